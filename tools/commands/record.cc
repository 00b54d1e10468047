// hotpack record: records a program's requests and changes nothing else.
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "nlohmann/json.hpp"
#include "profiler/trace_record.h"
#include "runtime/persist/stats_file.h"
#include "tools/cli/count_text.h"
#include "tools/cli/exit_codes.h"
#include "tools/cli/output_file.h"
#include "tools/cli/size_text.h"
#include "tools/run/recording_end.h"
#include "tools/run/run.h"
#include "tools/run/run_program.h"

namespace hotpack {
namespace {

namespace fs = std::filesystem;

// The outcome for the user, and whether the recording is whole.
struct Recorded {
  bool whole = true;
  std::string text;
};

// Of several processes it reports the one with most requests.
Recorded Summary(const RunOptions& options, const std::vector<ProcessStats>& processes) {
  const ProcessStats* most = nullptr;
  uint64_t requests = 0, recording = 0;
  for (const ProcessStats& process : processes) {
    const uint64_t own = process.stats.passed_through;
    if (own == 0) continue;
    ++recording;
    requests += own;
    if (most == nullptr || own > most->stats.passed_through) most = &process;
  }
  std::error_code error;
  const bool there = fs::exists(options.trace, error);
  if (most == nullptr && !there) return {true, "no process asked for device memory: nothing is recorded"};
  if (!there) return {false, options.trace + ": " + MissingBecause(options.trace)};
  if (const std::string reason = CutBecause(options.trace); !reason.empty())
    return {false, options.trace + ": " + reason};
  std::string text =
      CountText(requests, "request") + ", live peak " + FormatSize(most != nullptr ? most->stats.live_peak : 0);
  if (recording > 1)
    text += ", of " + std::to_string(recording) + " processes (" + options.trace + ", " + options.trace + ".PROCESS)";
  return {true, text + ". Next: hotpack show " + options.trace};
}

// Returns an empty string if the outputs may be written, else one line.
std::string CheckRecordOutputs(const RunOptions& options) {
  if (options.trace.empty() && options.graph.empty()) return "nothing to record: --out FILE, --graph FILE or both";
  if (!options.trace.empty()) {
    const absl::Status writable = CheckRecordingOutput("--out", options.trace, options.force);
    if (!writable.ok()) return std::string(writable.message());
  }
  if (options.graph.empty()) return "";
  std::error_code error;
  const auto followed = [&](const std::string& path) { return fs::weakly_canonical(fs::absolute(path, error), error); };
  if (!options.trace.empty() && followed(options.trace) == followed(options.graph))
    return options.graph + ": --out and --graph name the same file";
  return std::string(CheckOutput("--graph", options.graph, options.force).message());
}

// When the file was written last; the earliest time if there is none.
fs::file_time_type WrittenAt(const std::string& path) {
  std::error_code error;
  const fs::file_time_type at = fs::last_write_time(path, error);
  return error ? fs::file_time_type::min() : at;
}

// The outcome of --graph. `before`: when an earlier file of that name was written.
Recorded GraphSummary(const RunOptions& options, fs::file_time_type before) {
  if (WrittenAt(options.graph) == before) {
    return {false, "no graph: no process of PyTorch ended step " + std::to_string(options.graph_step) +
                       " (an optimizer's step, or hotpack.step())"};
  }
  std::ifstream file(options.graph);
  const nlohmann::json document = nlohmann::json::parse(file, nullptr, false);
  if (document.is_discarded() || !document.contains("peak")) return {false, options.graph + ": no graph"};
  const uint64_t peak = document["peak"].value("bytes", uint64_t{0});
  constexpr uint64_t kMebibyte = uint64_t{1} << 20;
  const uint64_t budget = peak / 5 * 4;
  return {true, "step " + std::to_string(options.graph_step) + ": " +
                    CountText(document["operators"].size(), "operator") + ", live peak " + FormatSize(peak) +
                    ". Next: hotpack plan " + options.graph + " --budget " +
                    (budget < 10 * kMebibyte ? std::to_string(budget) : std::to_string(budget / kMebibyte) + "MiB")};
}

int Record(RunOptions options) {
  if (const std::string reason = CheckRecordOutputs(options); !reason.empty()) return FailRun(options, 2, reason);
  options.record = !options.trace.empty();  // without a recording hotpack serves
  const fs::file_time_type before = WrittenAt(options.graph);
  const TemporaryDirectory directory;
  int code = 0;
  const std::optional<FinishedProgram> finished = RunProgram(options, directory.path(), &code);
  if (!finished) return code;
  bool whole = true;
  const auto report = [&whole](const Recorded& recorded) {
    fprintf(stderr, "hotpack record: %s\n", recorded.text.c_str());
    whole = whole && recorded.whole;
  };
  if (!options.trace.empty()) report(Summary(options, ReadStatsDirectory(directory.path())));
  if (!options.graph.empty()) report(GraphSummary(options, before));
  return finished->code == 0 && !whole ? kExitBadUse : finished->code;
}

}  // namespace

void AddRecordCommand(CLI::App& app, int* exit_code) {
  auto options = std::make_shared<RunOptions>();
  options->subcommand = "record";
  CLI::App* command = app.add_subcommand(
      "record", "Records what a program asks for, served by the driver; or the graph of a training step");
  AddOutputOption(command, "-o,--out", &options->trace, "The recording, a trace file; further processes add .PROCESS");
  CLI::Option* graph = AddOutputOption(
      command, "--graph", &options->graph,
      "The graph of one training step of PyTorch, for `hotpack plan` (docs/graph_format.md); further ranks add .rankN");
  command->add_option("--step", options->graph_step, "The step of --graph; the first one makes the optimizer's state")
      ->check(CLI::Range(2, 1'000'000))
      ->needs(graph)
      ->capture_default_str();
  command
      ->add_option("--gpu", options->graph_gpu,
                   "Whose data sheet gives the costs of --graph where they cannot be measured (H100 SXM)")
      ->needs(graph);
  AddForceFlag(command, &options->force);
  AddSimulateOptions(command, "Run on the simulated device; no GPU is needed", options.get());
  command->add_flag("--keep-caching", options->keep_caching,
                    "Leave PyTorch's and JAX's own caching on: then only what they ask the driver for is recorded");
  CLI::Option* first = AddProgram(command);
  command->footer(
      "The exit code is the program's.\nExample:\n  hotpack record -o job.trace -- python train.py\n"
      "  hotpack record --simulate --graph step.json -- python train.py");
  command->callback([command, first, options, exit_code] {
    const std::string reason = TakeProgram(*command, *first, options.get());
    *exit_code = reason.empty() ? Record(*options) : FailRun(*options, 2, reason);
  });
}

}  // namespace hotpack
