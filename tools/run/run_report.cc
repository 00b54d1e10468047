#include "tools/run/run_report.h"

#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "nlohmann/json.hpp"
#include "tools/cli/count_text.h"
#include "tools/cli/size_text.h"
#include "tools/compare/compare_facts.h"
#include "tools/compare/peers.h"
#include "tools/recording/load_curve.h"
#include "tools/report/write_report.h"
#include "tools/run/no_plan_text.h"
#include "tools/run/run_ending.h"

namespace hotpack {
namespace {

std::string Percent(uint64_t part, uint64_t whole) {
  char text[32];
  snprintf(text, sizeof(text), "%.1f %%",
           whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole));
  return text;
}

std::string Others(const std::vector<ProcessStats>& processes) {
  uint64_t others = 0, requests = 0;
  for (size_t i = 1; i < processes.size(); ++i) {
    if (processes[i].stats.requests == 0) continue;
    ++others;
    requests += processes[i].stats.requests;
  }
  if (others == 0) return "";
  return " (and " + CountText(requests, "request") + " of " + CountText(others, "other process") + ")";
}

std::string Quoted(const std::string& text) {
  if (text.find_first_of(" \t\n'\"\\$&|;<>()*?[]#~`!{}") == std::string::npos && !text.empty()) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

// Returns the program's name; for an interpreter its script's.
std::string ProgramTitle(const std::vector<std::string>& command) {
  const auto name = [](const std::string& word) { return std::filesystem::path(word).filename().string(); };
  const std::string program = name(command.front());
  const bool interpreted = program.rfind("python", 0) == 0 && command.size() > 1 && command[1].front() != '-';
  return interpreted ? name(command[1]) : program;
}

bool NothingServed(const std::vector<ProcessStats>& processes) {
  return processes.empty() || processes.front().stats.requests == 0;
}

// Returns the recording of the process with most requests. The first process that requests memory has the plain name;
// others append their process id.
std::string BusiestRecording(const RunOptions& options, const std::string& directory,
                             const std::vector<ProcessStats>& processes) {
  std::string path = RecordingPath(options, directory);
  const std::string own = path + "." + std::to_string(processes.front().pid);
  std::error_code error;
  return std::filesystem::exists(own, error) ? own : path;
}

// Returns "-- python ...".
std::string Program(const RunOptions& options) {
  return "-- " + Quoted(options.command.front()) + (options.command.size() > 1 ? " ..." : "");
}

std::string Simulate(const RunOptions& options) { return options.simulate ? "--simulate " : ""; }

// The page and the recording, if they are there.
std::string Written(const RunOptions& options, RunReport page) {
  std::error_code error;
  std::string text = page == RunReport::kWritten ? ". Report: " + Quoted(options.report) : "";
  if (!options.trace.empty() && std::filesystem::exists(options.trace, error)) {
    text += ". Next: hotpack show " + Quoted(options.trace);
  }
  return text;
}

// Returns Written(), or the command that records too. None where a recording was wanted and could not be written.
std::string Next(const RunOptions& options, RunReport page) {
  const std::string written = Written(options, page);
  if (!written.empty() || !options.trace.empty()) return written;
  return ". Next: hotpack run " + Simulate(options) + "--trace job.trace " + Program(options);
}

// After a failure: whether the program runs without hotpack; without memory, how much it takes.
std::string NextAfterFailure(const RunOptions& options, RunReport page, bool without_memory) {
  const std::string written = Written(options, page);
  if (!written.empty()) return written;
  if (!without_memory) {
    return ". Next: HOTPACK=0 hotpack run " + Simulate(options) + Program(options) +
           " (without hotpack: does it fail?)";
  }
  return ". Next: hotpack need " + Program(options) + " (without a GPU: what takes it, and which device is enough?)";
}

// Where hotpack served nothing, the doctor says why.
std::string AskDoctor(const RunOptions& options) {
  return ". Next: hotpack doctor " + Simulate(options) + Program(options);
}

// The most held, and by the same measure what PyTorch would have held, if known.
std::string Held(const hotpack_stats& stats, const std::optional<PytorchHeld>& pytorch) {
  std::string text = "held at most " + FormatSize(stats.reserved_peak);
  if (pytorch) {
    text += " (PyTorch would have held " + FormatSize(pytorch->usual) + ", with expandable segments " +
            FormatSize(pytorch->expandable) + ")";
  }
  if (stats.steady_iteration >= 0) text += ", held while served " + FormatSize(stats.reserved_steady);
  return text + ", live peak " + FormatSize(stats.live_peak);
}

// Why nothing was served, if that is known.
std::string LeftToDriver(const RunOptions& options, const std::vector<ProcessStats>& processes, bool failed) {
  // The figures of a process that a signal ends are those of the last flush (docs/statistics.md).
  if (failed && !processes.empty() && processes.front().arenas > 0) return "too early for figures";
  const uint64_t passed = processes.empty() ? 0 : processes.front().stats.passed_through;
  if (passed == 0) return "no process asked for device memory";
  const std::string all =
      passed == 1 ? "the only allocation request was" : "all " + CountText(passed, "allocation request") + " were";
  const auto arena = options.variables.find("HOTPACK_ARENA");
  const bool plain = arena != options.variables.end() && arena->second.rfind("plain", 0) == 0;
  return all + " left to the driver" + (plain ? ": the device has no room for an arena of " + arena->second : "");
}

}  // namespace

CheckerTotals ReadCheckerFile(const std::string& path) {
  std::ifstream file(path);
  CheckerTotals totals;
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("simgpu: REPORT ", 0) == 0) ++totals.reports;
    int process = 0;
    uint64_t known = 0, not_known = 0, told = 0, not_told = 0;
    if (sscanf(line.c_str(),
               "simgpu: process %d: %" SCNu64 " kernels with known parameters, %" SCNu64 " without; %" SCNu64
               " library calls told, %" SCNu64 " not",
               &process, &known, &not_known, &told, &not_told) != 5) {
      continue;
    }
    totals.kernels_known += known;
    totals.kernels_not_known += not_known;
    totals.library_calls_told += told;
    totals.library_calls_not_told += not_told;
  }
  return totals;
}

std::string StatsJson(const hotpack_stats& stats, const CheckerTotals* checker, const ProgramSections& sections) {
  nlohmann::ordered_json json;
#define HOTPACK_STAT(name) json[#name] = stats.name;
#include "runtime/stats_table.inc"
#undef HOTPACK_STAT
  if (checker != nullptr) {
    json["checker_reports"] = checker->reports;
    json["kernels_known"] = checker->kernels_known;
    json["kernels_not_known"] = checker->kernels_not_known;
    json["library_calls_told"] = checker->library_calls_told;
    json["library_calls_not_told"] = checker->library_calls_not_told;
  }
  for (const auto& [name, figures] : sections.figures.items()) {
    if (!json.contains(name)) json[name] = figures;
  }
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::optional<PytorchHeld> PytorchWouldHold(const RunOptions& options, const std::string& directory,
                                            const std::vector<ProcessStats>& processes) {
  constexpr uint64_t kMaxBytes = 64 << 20;  // some seconds
  if (NothingServed(processes) || options.keep_caching || RecordingPath(options, directory).empty())
    return std::nullopt;
  if (processes.front().stats.passed_through > 0) return std::nullopt;  // these are not in the recording
  const std::string path = BusiestRecording(options, directory, processes);
  std::error_code error;
  // The recording of another context, whose arena is in the figures too.
  if (std::filesystem::exists(path + ".2", error)) return std::nullopt;
  if (std::filesystem::file_size(path, error) > kMaxBytes || error) return std::nullopt;
  const absl::StatusOr<TraceFile> file = LoadTrace(path);
  if (!file.ok() || file->origin.end != TraceOrigin::End::kClosed) return std::nullopt;
  if (file->trace.events.size() > kSmallestDeviceEvents) {
    return PytorchHeld{SimulatePeer("pytorch", file->trace).reserved_peak,
                       SimulatePeer("pytorch-expandable", file->trace).reserved_peak};
  }
  const Comparison all = Compare(file->trace, {"pytorch", "pytorch-expandable"}, 0, true);
  return PytorchHeld{all.peers[0].reserved_peak, all.peers[1].reserved_peak, all.hotpack.smallest.bytes,
                     all.peers[0].smallest.bytes, all.peers[1].smallest.bytes};
}

std::string SummaryLine(const RunOptions& options, const std::vector<ProcessStats>& processes, int code,
                        const CheckerTotals* totals, RunReport report, const std::optional<PytorchHeld>& pytorch,
                        const std::string& plan_note) {
  const bool any = totals != nullptr && totals->reports > 0;
  const std::string checker = any ? "; the checker has " + CountText(totals->reports, "report") : std::string();
  const std::string ended = ExitText(code);
  if (const ProcessStats* process = EndedWithoutMemory(processes, code)) {
    return "hotpack: " + OutOfMemoryText(process->failed) + "; " + ended + checker +
           NextAfterFailure(options, report, true);
  }
  const std::string failed = FailedRequestsText(processes);
  if (NothingServed(processes)) {
    return "hotpack: " + (ended.empty() ? "" : ended + "; ") + LeftToDriver(options, processes, !ended.empty()) +
           (failed.empty() ? "" : "; " + failed) + checker +
           (report == RunReport::kNothingToShow ? "; there is nothing to report" : "") +
           (report == RunReport::kWritten ? Next(options, report) : AskDoctor(options));
  }
  const hotpack_stats& stats = processes.front().stats;
  const std::string reason = NoPlanText(stats);
  std::string line = "hotpack: " + (ended.empty() ? "" : ended + "; until then ") + Held(stats, pytorch) + "; " +
                     Percent(stats.planned, stats.requests) + " of " + CountText(stats.requests, "request") +
                     " by the plan" + (reason.empty() ? "" : ": " + reason) + Others(processes);
  if (pytorch && pytorch->smallest_hotpack > 0) {
    line += "; smallest device " + FormatSize(pytorch->smallest_hotpack) + " (PyTorch " +
            FormatSize(pytorch->smallest_usual) + ", with expandable segments " +
            FormatSize(pytorch->smallest_expandable) + ")";
  }
  return line + (failed.empty() ? "" : "; " + failed) + plan_note + checker +
         (ended.empty() ? Next(options, report) : NextAfterFailure(options, report, false));
}

std::string LoadCurve(const RunOptions& options, const std::string& directory,
                      const std::vector<ProcessStats>& processes) {
  constexpr uint64_t kMaxBytes = 64 << 20;  // of a recording that is read only for its curve
  constexpr size_t kIndent = 9;             // below the text after "hotpack: "
  if (processes.empty() || !ShowsCurves(STDERR_FILENO)) return "";
  const size_t width = CurveWidth(STDERR_FILENO, kIndent);
  if (!processes.front().load.empty()) return CurveText(processes.front().load, width, 2, kIndent);
  if (RecordingPath(options, directory).empty()) return "";
  const std::string path = BusiestRecording(options, directory, processes);
  std::error_code error;
  if (std::filesystem::file_size(path, error) > kMaxBytes || error) return "";
  const absl::StatusOr<TraceFile> file = LoadTrace(path);
  if (!file.ok()) return "";
  return CurveText(LoadWorthShowing(file->trace), width, 2, kIndent);
}

RunReport WriteRunReport(const RunOptions& options, const std::string& directory,
                         const std::vector<ProcessStats>& processes, const std::string& stats,
                         const ProgramSections& sections, std::string* reason) {
  if (options.report.empty()) return RunReport::kNotWanted;
  ReportOptions report;
  if (!processes.empty()) report.path = BusiestRecording(options, directory, processes);
  std::error_code error;
  if (NothingServed(processes) && !std::filesystem::exists(report.path, error)) return RunReport::kNothingToShow;
  report.out = options.report;
  report.title = ProgramTitle(options.command);
  report.command = std::string("hotpack run") + (options.simulate ? " --simulate --" : " --");
  for (const std::string& word : options.command) report.command += " " + Quoted(word);
  report.stats = nlohmann::ordered_json::parse(stats);
  report.budget = sections.report.value("budget", nlohmann::ordered_json());
  std::string summary;
  *reason = std::string(WriteReport(report, &summary).message());
  return reason->empty() ? RunReport::kWritten : RunReport::kFailed;
}

}  // namespace hotpack
