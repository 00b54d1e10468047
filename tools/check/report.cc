#include "tools/check/report.h"

#include <cctype>
#include <cstdlib>
#include <map>

#include "hotpack_commit.h"
#include "tools/check/machine.h"
#include "tools/cli/count_text.h"

namespace hotpack::check {
namespace {

using nlohmann::ordered_json;

template <typename Items>
ordered_json List(const Items& items) {
  ordered_json list = ordered_json::array();
  for (const auto& item : items) list.push_back(ToJson(item));
  return list;
}

ordered_json StepJson(const Step& step) {
  ordered_json json = {{"group", step.group}, {"name", step.name}};
  if (!step.command.empty()) {
    json["command"] = step.command;
    json["environment"] = step.environment;
    json["exit_code"] = step.exit_code;
    json["timed_out"] = step.timed_out;
    json["seconds"] = step.seconds;
  }
  json["findings"] = List(step.findings);
  if (step.running) {
    const Finding running = {"ended", Result::kSkip, "the program ends by itself", "it was running at this moment"};
    json["findings"].push_back(ToJson(running));
  }
  json["figures"] = List(step.figures);
  if (!step.stats.is_null()) json["stats"] = step.stats;
  if (!step.errors.empty()) json["stderr"] = step.errors;
  return json;
}

void ReplaceAll(std::string* text, const std::string& what, const std::string& with) {
  if (what.size() < 2) return;  // "/" as a home directory
  for (size_t at = 0; (at = text->find(what, at)) != std::string::npos; at += with.size())
    text->replace(at, what.size(), with);
}

// The file is kept with the project, so it must not identify the machine's owner.
std::string WithoutPaths(std::string text, const Session& session) {
  ReplaceAll(&text, session.scratch() + "/", "SCRATCH/");
  for (const std::string& directory : session.options().traces) ReplaceAll(&text, directory + "/", "TRACES/");
  for (const auto& [path, name] : session.hidden_paths()) {
    if (path.find('/') != std::string::npos) ReplaceAll(&text, "\"" + path + "\"", "\"" + name + "\"");
  }
  ReplaceAll(&text, session.kit().root + "/", "");
  const char* home = getenv("HOME");
  if (home != nullptr) ReplaceAll(&text, std::string(home) + "/", "~/");
  return text;
}

ordered_json OptionsJson(const Options& options) {
  return {{"mode", ModeName(options.mode)},       {"only", options.only},         {"traces", options.traces.size()},
          {"library_path", options.library_path}, {"simulate", options.simulate}, {"step_limit", options.step_limit}};
}

bool Any(const Step&) { return true; }
bool UnderHotpack(const Step& step) { return step.hotpack; }
bool WithoutHotpack(const Step& step) { return !step.hotpack; }

// Prints lines "  step  finding: expected ..., seen ..." for all findings with this result in such steps, after a
// title.
void PrintFindings(const Session& session, bool (*wanted)(const Step&), Result result, const char* title, FILE* file) {
  bool first = true;
  for (const Step& step : session.steps()) {
    if (!wanted(step)) continue;
    for (const Finding& finding : step.findings) {
      if (finding.result != result) continue;
      if (first) fprintf(file, "\n%s\n", title);
      first = false;
      fprintf(file, "  %s: %s", step.FullName().c_str(), finding.name.c_str());
      if (!finding.expected.empty()) fprintf(file, "\n      expected  %s", finding.expected.c_str());
      fprintf(file, "\n      seen      %s\n", finding.seen.c_str());
    }
  }
}

// Prints one line per reason, with the number of its steps.
void PrintSkips(const Session& session, FILE* file) {
  std::map<std::string, std::pair<size_t, std::string>> reasons;
  for (const Step& step : session.steps()) {
    for (const Finding& finding : step.findings) {
      if (finding.result != Result::kSkip) continue;
      auto& [count, example] = reasons[finding.seen];
      if (count++ == 0) example = step.FullName() + ": " + finding.name;
    }
  }
  if (!reasons.empty()) fprintf(file, "\nleft out\n");
  for (const auto& [reason, where] : reasons) {
    fprintf(file, "  %s (%zu: %s%s)\n", reason.c_str(), where.first, where.second.c_str(),
            where.first > 1 ? ", ..." : "");
  }
}

void PrintTiming(const Session& session, FILE* file) {
  for (const Step& step : session.steps()) {
    if (step.FullName() != "timing/rounds") continue;
    fprintf(file, "\na request and its release%s\n",
            session.simulated() ? " (simulated: says nothing about a GPU)" : "");
    for (const Figure& figure : step.figures) {
      fprintf(file, "  %-40s %12.2f %-10s (%.2f to %.2f in %zu rounds)\n", figure.name.c_str(), figure.median,
              figure.unit.c_str(), figure.low, figure.high, figure.samples);
    }
  }
}

}  // namespace

Counts Count(const Session& session) {
  Counts counts;
  for (const Step& step : session.steps()) {
    ++counts.steps;
    for (const Finding& finding : step.findings) {
      switch (finding.result) {
        case Result::kPass:
          ++counts.pass;
          break;
        case Result::kFail:
          ++counts.fail;
          break;
        case Result::kDiffers:
          ++(step.hotpack ? counts.differs_hotpack : counts.differs_driver);
          break;
        case Result::kSkip:
          ++counts.skip;
          break;
      }
    }
  }
  return counts;
}

std::string DocumentText(const Session& session, const DeviceReport& report, const std::string& date, bool complete) {
  const Counts counts = Count(session);
  ordered_json steps = ordered_json::array();
  for (const Step& step : session.steps()) steps.push_back(StepJson(step));
  const ordered_json document = {
      {"schema", "hotpack-gpu-check"},
      {"schema_version", 1},
      {"date", date},
      {"simulated", session.simulated()},
      {"complete", complete},
      {"seconds", session.SecondsSoFar()},
      {"hotpack", {{"version", HOTPACK_VERSION_TEXT}, {"commit", HOTPACK_COMMIT}, {"build_type", HOTPACK_BUILD_TYPE}}},
      {"options", OptionsJson(session.options())},
      {"device", report.device},
      {"versions", report.versions},
      {"host", HostFacts()},
      {"summary",
       {{"steps", counts.steps},
        {"pass", counts.pass},
        {"fail", counts.fail},
        {"differs_driver", counts.differs_driver},
        {"differs_hotpack", counts.differs_hotpack},
        {"skip", counts.skip}}},
      {"steps", steps},
  };
  // A program's output need not be UTF-8.
  return WithoutPaths(document.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n", session);
}

std::string DefaultName(const std::string& device, const std::string& date) {
  std::string name = "gpu_check-";
  for (const char c : device) {
    const bool plain = isalnum(static_cast<unsigned char>(c)) != 0;
    if (plain) {
      name += static_cast<char>(tolower(static_cast<unsigned char>(c)));
    } else if (name.back() != '-') {
      name += '-';
    }
  }
  if (name.back() != '-') name += '-';
  for (const char c : date) {
    if (c != '-' && c != ':') name += c;
  }
  return name + ".json";
}

void PrintSummary(const Session& session, const DeviceReport& report, FILE* file) {
  const Counts counts = Count(session);
  PrintSkips(session, file);
  PrintTiming(session, file);
  PrintFindings(session, UnderHotpack, Result::kDiffers, "hotpack answers differently from the driver", file);
  PrintFindings(session, WithoutHotpack, Result::kDiffers, "the driver DIFFERS from what is documented", file);
  PrintFindings(session, Any, Result::kFail, "FAILED", file);
  const std::string name = report.device.is_object() ? report.device.at("name").get<std::string>() : "no device";
  fprintf(file,
          "\n%s: %s in %.0f s; %zu passed, %zu failed, %zu differ (%zu the driver, %zu hotpack), %zu left out%s\n",
          name.c_str(), CountText(counts.steps, "step").c_str(), session.SecondsSoFar(), counts.pass, counts.fail,
          counts.differs_driver + counts.differs_hotpack, counts.differs_driver, counts.differs_hotpack, counts.skip,
          session.simulated() ? " (SIMULATED)" : "");
}

}  // namespace hotpack::check
