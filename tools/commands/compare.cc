// hotpack compare: a recording under hotpack and under the simulated policies of other allocators, in one table.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "nlohmann/json.hpp"
#include "profiler/trace_file.h"
#include "tools/cli/choices.h"
#include "tools/cli/commands.h"
#include "tools/cli/count_text.h"
#include "tools/cli/progress.h"
#include "tools/cli/size_text.h"
#include "tools/compare/compare_facts.h"
#include "tools/formats/any_recording.h"
#include "tools/replay/repeat_step.h"

namespace hotpack {
namespace {

using Json = nlohmann::ordered_json;
using Seconds = std::chrono::duration<double>;

struct Options {
  std::string file;
  std::vector<std::string> peers = PeerNames();
  std::string capacity;
  uint64_t repeat = 0;
  bool json = false;
};

int Fail(const std::string& message) {
  fprintf(stderr, "hotpack compare: %s\n", message.c_str());
  return 2;
}

std::string JoinedNames() {
  std::string names;
  for (const std::string& name : PeerNames()) names += (names.empty() ? "" : ", ") + name;
  return names;
}

double Ratio(uint64_t bytes, uint64_t live) {
  return live == 0 ? 1.0 : static_cast<double>(bytes) / static_cast<double>(live);
}

Json ToJson(const PeerResult& peer, const Comparison& comparison) {
  Json row = {{"name", peer.name}, {"title", peer.title}, {"offline", peer.offline}};
  if (peer.out_of_memory) {
    row["out_of_memory"] = true;
    if (!peer.offline) {
      row["failed_request"] = peer.failed_request;
      row["failed_bytes"] = peer.failed_bytes;
    }
    return row;
  }
  row["out_of_memory"] = false;
  row["reserved_peak"] = peer.reserved_peak;
  row["ratio"] = Ratio(peer.reserved_peak, comparison.live_peak);
  row["reserved_steady"] = peer.reserved_steady;
  row["ratio_steady"] = Ratio(peer.reserved_steady, comparison.live_steady);
  row["device_calls"] = peer.device_calls;
  return row;
}

void PrintJson(const Comparison& comparison, uint64_t capacity) {
  Json object = {
      {"requests", comparison.requests}, {"live_peak", comparison.live_peak}, {"live_steady", comparison.live_steady}};
  object["capacity"] = capacity == 0 ? Json() : Json(capacity);
  object["iteration"] = Json();
  if (comparison.period > 0) {
    object["iteration"] = {{"requests", comparison.period},
                           {"marked", comparison.marked},
                           {"not_planned", comparison.not_planned},
                           {"plan_height", comparison.plan_height},
                           {"plan_lower_bound", comparison.plan_lower_bound}};
  }
  object["rows"] = Json::array();
  Json hotpack = ToJson(comparison.hotpack, comparison);
  if (!comparison.hotpack.out_of_memory) {
    hotpack["held_while_served"] = comparison.held_while_served > 0 ? Json(comparison.held_while_served) : Json();
  }
  object["rows"].push_back(std::move(hotpack));
  for (const PeerResult& peer : comparison.peers) object["rows"].push_back(ToJson(peer, comparison));
  printf("%s\n", object.dump(2).c_str());
}

// Returns "708.3  1.0024": MiB, and the ratio to `live`.
std::string Cell(uint64_t bytes, uint64_t live) {
  char text[64];
  snprintf(text, sizeof(text), "%10.1f %7.4f", static_cast<double>(bytes) / 1048576.0, Ratio(bytes, live));
  return text;
}

void PrintRow(const PeerResult& peer, const Comparison& comparison) {
  if (peer.out_of_memory) {
    const std::string where =
        peer.offline ? ""
                     : ": request " + std::to_string(peer.failed_request) + ", of " + FormatSize(peer.failed_bytes);
    printf("%-38s  does not fit%s\n", peer.title.c_str(), where.c_str());
    return;
  }
  printf("%-38s %s %13llu\n", peer.title.c_str(), Cell(peer.reserved_peak, comparison.live_peak).c_str(),
         static_cast<unsigned long long>(peer.device_calls));
}

void PrintText(const std::string& file, const Comparison& comparison, const std::string& capacity) {
  printf("%s: %s", file.c_str(), CountText(comparison.requests, "request").c_str());
  if (!capacity.empty()) printf(", on a device of %s", capacity.c_str());
  printf("\n");
  if (comparison.period > 0) {
    printf("iteration with the highest live load: %s, %s\n", CountText(comparison.period, "request").c_str(),
           comparison.marked ? "as marked" : "as found");
    printf("plan of it: height %s, lower bound %s; live in addition, not planned: %s\n",
           FormatSize(comparison.plan_height).c_str(), FormatSize(comparison.plan_lower_bound).c_str(),
           FormatSize(comparison.not_planned).c_str());
  } else {
    printf("no iteration is marked and none repeats\n");
  }
  printf("\n%-38s %18s %13s\n", "held at most in the whole run", "MiB    of live", "driver calls");
  printf("%-38s %s %13s\n", "live: no allocator holds less", Cell(comparison.live_peak, comparison.live_peak).c_str(),
         "-");
  PrintRow(comparison.hotpack, comparison);
  for (const PeerResult& peer : comparison.peers) PrintRow(peer, comparison);
  if (comparison.held_while_served > 0) {
    printf("\nhotpack's engine, held while served by the plan: %.1f MiB\n",
           static_cast<double>(comparison.held_while_served) / 1048576.0);
  }
}

int RunCompare(const Options& options) {
  absl::StatusOr<TraceFile> file = LoadForCommand("compare", options.file);
  if (!file.ok()) return Fail(std::string(file.status().message()));
  const uint64_t capacity = options.capacity.empty() ? 0 : static_cast<uint64_t>(*ParseSize(options.capacity));
  std::optional<Progress> progress(std::in_place, "comparing " + options.file);
  const Comparison comparison = Compare(RepeatSteadyStep(file->trace, options.repeat), options.peers, capacity);
  progress.reset();
  if (comparison.requests == 0) return Fail(options.file + ": no requests to compare");
  if (options.json) {
    PrintJson(comparison, capacity);
  } else {
    PrintText(options.file, comparison, options.capacity);
  }
  return 0;
}

}  // namespace

void AddCompareCommand(CLI::App& app, int* exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("compare", "Shows the most that hotpack and other allocators would hold for a recording");
  command->add_option("TRACE", options->file, "A recording, also a PyTorch snapshot or an RMM log")->required();
  CLI::Option* peers =
      command->add_option("--peers", options->peers, "Only these, separated by commas; of " + JoinedNames())
          ->delimiter(',')
          ->check(
              [](const std::string& name) {
                const std::vector<std::string> names = PeerNames();
                return std::find(names.begin(), names.end(), name) != names.end()
                           ? std::string()
                           : "'" + name + "' is none of " + JoinedNames();
              },
              "NAME");
  NoteChoices(peers, PeerNames(), true);
  command
      ->add_option("--capacity", options->capacity,
                   "The device has so much memory (such as 16G): what fits, and what fails where?")
      ->check(SizeOption())
      ->check([](const std::string& size) { return ParseSize(size) > 0 ? std::string() : "a capacity is at least 1"; });
  command
      ->add_option("--repeat", options->repeat,
                   "Of a short recording: play its last step, if it repeats the one before, N more times")
      ->check(CLI::Range(uint64_t{0}, uint64_t{10'000}))
      ->type_name("N")
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print one object; bytes");
  command->footer(
      "Example:\n  hotpack compare job.trace --peers pytorch,pytorch-expandable\n"
      "Each policy is simulated on the recording's own events (docs/compare.md).");
  command->callback([options, exit_code] { *exit_code = RunCompare(*options); });
}

}  // namespace hotpack
