#include "tools/report/show_plan.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "nlohmann/json.hpp"
#include "runtime/persist/plan_file.h"
#include "tools/cli/count_text.h"
#include "tools/cli/size_text.h"

namespace hotpack {
namespace {

using Json = nlohmann::ordered_json;

// One script in figures. Bytes are sums of sizes rounded up to 512.
struct Figures {
  uint64_t requests = 0;  // of the cycle
  uint64_t planned = 0;
  uint64_t bytes = 0;  // planned, of all requests
  uint64_t load = 0;
};

Figures FiguresOf(const Script& script) {
  Figures figures;
  figures.requests = script.size();
  for (const ProfileBlock& block : script.profile.blocks) {
    if (!block.planned) continue;
    ++figures.planned;
    figures.bytes += block.units * kBlockUnit;
  }
  figures.load = PeakUnits(script.profile) * kBlockUnit;
  return figures;
}

// Returns the opening's requests that belong to no iteration.
uint64_t Others(const Opening& opening) {
  uint64_t others = 0;
  for (uint32_t entry : opening.entries) others += entry == kNone;
  return others;
}

std::string Version(uint32_t version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

Json ToJson(const Script& script) {
  const Figures figures = FiguresOf(script);
  return {{"requests", script.profile.period},
          {"unroll", script.profile.unroll},
          {"cycle", figures.requests},
          {"planned", figures.planned},
          {"planned_bytes", figures.bytes},
          {"carried_blocks", script.profile.carried_blocks},
          {"carried_bytes", script.profile.carried_units * kBlockUnit},
          {"peak", figures.load},
          {"lower_bound", script.lower_bound_bytes},
          {"height", script.height_bytes}};
}

void PrintJson(const SavedPlan& plan) {
  Json object = {{"format", "plan"},
                 {"program", plan.program},
                 {"created", UtcText(plan.created_ns)},
                 {"version", Version(plan.tool_version)},
                 {"device", plan.device},
                 {"device_bytes", plan.device_bytes},
                 {"chunk_bytes", plan.chunk_bytes},
                 {"live_peak", plan.live_peak_bytes},
                 {"held_without", plan.held_without_bytes}};
  object["opening"] = {{"before", plan.opening.before},
                       {"requests", plan.opening.units.size()},
                       {"others", Others(plan.opening)},
                       {"script", plan.opening.script}};
  for (const auto& script : plan.scripts) object["scripts"].push_back(ToJson(*script));
  printf("%s\n", object.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
}

// Names from a file go to the terminal: keeps only printable characters.
std::string Printable(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
  }
  return text;
}

void PrintText(const SavedPlan& plan) {
  auto u = [](uint64_t value) { return static_cast<unsigned long long>(value); };
  printf("format         plan, %s, hotpack %s\n", UtcText(plan.created_ns).c_str(), Version(plan.tool_version).c_str());
  printf("program        %s\n", plan.program.empty() ? "unknown" : Printable(plan.program).c_str());
  printf("device         %s, %s, chunks of %s\n", plan.device.empty() ? "unknown" : Printable(plan.device).c_str(),
         FormatSize(plan.device_bytes).c_str(), FormatSize(plan.chunk_bytes).c_str());
  printf("live           %llu at most (%s)\n", u(plan.live_peak_bytes), FormatSize(plan.live_peak_bytes).c_str());
  if (plan.held_without_bytes > 0) {
    printf("without it     a run held %s at most\n", FormatSize(plan.held_without_bytes).c_str());
  }
  if (plan.opening.empty()) {
    printf("opening        not known: the iteration has to be recognised\n");
  } else {
    printf("opening        %s, the iteration begins after %llu; %llu are none of its own\n",
           CountText(plan.opening.units.size(), "request").c_str(), u(plan.opening.before), u(Others(plan.opening)));
  }
  for (size_t k = 0; k < plan.scripts.size(); ++k) {
    const Script& script = *plan.scripts[k];
    const Figures figures = FiguresOf(script);
    printf("script %zu%s\n", k + 1, k == plan.opening.script ? ", which a run begins with" : "");
    printf("  requests     %u", script.profile.period);
    if (script.profile.unroll > 1)
      printf(", planned %s at a time", CountText(script.profile.unroll, "iteration").c_str());
    printf("; %llu of %llu planned, %s in all\n", u(figures.planned), u(figures.requests),
           FormatSize(figures.bytes).c_str());
    printf("  carried      %s, %s\n", CountText(script.profile.carried_blocks, "block").c_str(),
           FormatSize(script.profile.carried_units * kBlockUnit).c_str());
    printf("  peak         %llu (%s)\n", u(figures.load), FormatSize(figures.load).c_str());
    printf("  lower bound  %llu (%s)\n", u(script.lower_bound_bytes), FormatSize(script.lower_bound_bytes).c_str());
    printf("  height       %llu (%s)\n", u(script.height_bytes), FormatSize(script.height_bytes).c_str());
  }
}

}  // namespace

std::string UtcText(uint64_t ns) {
  time_t seconds = static_cast<time_t>(ns / 1'000'000'000);
  struct tm utc = {};
  gmtime_r(&seconds, &utc);
  char text[40];
  strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

bool LooksLikePlan(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;  // reading a pipe would take its bytes from others
  std::ifstream file(path, std::ios::binary);
  char head[8] = "";
  file.read(head, sizeof(head));
  return IsPlanFile(reinterpret_cast<const uint8_t*>(head), static_cast<size_t>(file.gcount()));
}

int ShowPlan(const std::string& path, bool json) {
  SavedPlan plan;
  const PlanFileStatus status = ReadPlanFile(path.c_str(), &plan);
  if (status != PlanFileStatus::kOk) {
    const char* reason = status == PlanFileStatus::kCannotRead ? strerror(errno) : PlanFileText(status);
    fprintf(stderr, "hotpack show: %s: %s\n", path.c_str(), reason);
    return 2;
  }
  if (json) {
    PrintJson(plan);
  } else {
    PrintText(plan);
  }
  return 0;
}

}  // namespace hotpack
