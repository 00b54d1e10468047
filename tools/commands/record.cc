// hotpack record: records a program's requests and changes nothing else.
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
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
  const bool there = std::filesystem::exists(options.trace, error);
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

int Record(const RunOptions& options) {
  const absl::Status writable = CheckRecordingOutput("--out", options.trace, options.force);
  if (!writable.ok()) return FailRun(options, 2, std::string(writable.message()));
  const TemporaryDirectory directory;
  int code = 0;
  const std::optional<FinishedProgram> finished = RunProgram(options, directory.path(), &code);
  if (!finished) return code;
  const Recorded recorded = Summary(options, ReadStatsDirectory(directory.path()));
  fprintf(stderr, "hotpack record: %s\n", recorded.text.c_str());
  return finished->code == 0 && !recorded.whole ? kExitBadUse : finished->code;
}

}  // namespace

void AddRecordCommand(CLI::App& app, int* exit_code) {
  auto options = std::make_shared<RunOptions>();
  options->subcommand = "record";
  options->record = true;
  CLI::App* command =
      app.add_subcommand("record", "Records what a program asks for; all of it is the driver's to serve");
  AddOutputOption(command, "-o,--out", &options->trace, "The recording, a trace file; further processes add .PROCESS")
      ->required();
  AddForceFlag(command, &options->force);
  command->add_flag("--simulate", options->simulate, "Run on the simulated device; no GPU is needed");
  command->add_flag("--keep-caching", options->keep_caching,
                    "Leave PyTorch's and JAX's own caching on: then only what they ask the driver for is recorded");
  CLI::Option* first = AddProgram(command);
  command->footer("The exit code is the program's.\nExample:\n  hotpack record -o job.trace -- python train.py");
  command->callback([command, first, options, exit_code] {
    const std::string reason = TakeProgram(*command, *first, options.get());
    *exit_code = reason.empty() ? Record(*options) : FailRun(*options, 2, reason);
  });
}

}  // namespace hotpack
