#include "tools/run/run.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>

#include "CLI/CLI.hpp"
#include "preload/process/option_table.h"
#include "tools/cli/exit_codes.h"
#include "tools/cli/file_sink.h"
#include "tools/cli/output_file.h"
#include "tools/cli/size_text.h"
#include "tools/report/show_plan.h"
#include "tools/run/plan_note.h"
#include "tools/run/recording_end.h"
#include "tools/run/run_linked.h"
#include "tools/run/run_program.h"
#include "tools/run/run_report.h"
#include "tools/run/run_setup.h"

namespace hotpack {
namespace {

namespace fs = std::filesystem;

// Returns true for flags that are the library's own options, from its table. --trace and --plan are more than a
// variable.
bool IsPlainOption(const OptionRow& row) {
  return row.flag[0] != '\0' && std::string_view(row.flag) != "--trace" && std::string_view(row.flag) != "--plan";
}

// Returns the meaning of an option's variable (docs/environment.md) as that of its flag: a sentence without the
// "whether" of a variable that is 0 or 1, and with the folder of a page that it names.
std::string FlagMeaning(const OptionRow& row) {
  constexpr std::string_view kWhether = "whether ";
  std::string meaning = row.meaning;
  std::erase(meaning, '`');
  if (meaning.starts_with(kWhether)) meaning.erase(0, kWhether.size());
  if (const size_t page = meaning.find(".md)"); page != std::string::npos) {
    meaning.insert(meaning.rfind('(', page) + 1, "docs/");
  }
  const std::string_view first(meaning.data(), std::min(meaning.find(' '), meaning.size()));
  const bool is_name = std::any_of(first.begin(), first.end(), [](unsigned char c) { return isupper(c) != 0; });
  if (!is_name) meaning[0] = static_cast<char>(toupper(static_cast<unsigned char>(meaning[0])));  // not of cuMemAlloc
  return meaning;
}

void AddOptionFlags(CLI::App* command, RunOptions* options) {
  for (const OptionRow& row : kOptionRows) {
    if (!IsPlainOption(row)) continue;
    const std::string meaning = FlagMeaning(row);
    if (std::string_view(row.values) == "0 or 1") {
      command->add_flag_callback(
          row.flag, [options, &row] { options->variables[row.variable] = "1"; }, meaning);
      continue;
    }
    command->add_option(row.flag, options->variables[row.variable], meaning + " (" + row.values + ")")
        ->default_str(row.fallback);
  }
}

// Returns an empty string, or the flag that has no such value. Removes flags that were not given: the environment
// applies.
std::string CheckOptionFlags(const CLI::App& command, RunOptions* options) {
  for (const OptionRow& row : kOptionRows) {
    if (!IsPlainOption(row)) continue;
    if (command.count(row.flag) == 0) {
      options->variables.erase(row.variable);
      continue;
    }
    const std::string& value = options->variables[row.variable];
    Options parsed;
    if (value.empty() || !row.parse(value.c_str(), &parsed)) {
      return std::string(row.flag) + " " + value + ": not " + row.values;
    }
  }
  const auto budget = options->variables.find("HOTPACK_BUDGET");
  const bool wanted = budget != options->variables.end() && budget->second != "0" && budget->second != "none";
  if (wanted && (options->compatibility || options->keep_caching)) {
    return std::string("--budget: needs hotpack as PyTorch's allocator, which ") +
           (options->compatibility ? "--compatibility" : "--keep-caching") + " leaves out";
  }
  return "";
}

// Returns an empty string, or why a plan can neither be read from `path` nor saved there. The library handles an
// unusable plan: it replaces it.
std::string CheckPlanFile(const std::string& path) {
  const std::string reason = CheckWritable(path);
  std::error_code error;
  if (!reason.empty() || !fs::exists(path, error) || fs::file_size(path, error) == 0) return reason;
  return LooksLikePlan(path) ? "" : "is there, and is no plan file";
}

// Returns an empty string, or which two options name one file, perhaps by different paths.
std::string SameOutput(const std::vector<std::pair<std::string, std::string>>& outputs) {
  std::error_code error;
  const auto followed = [&](const std::string& path) { return fs::weakly_canonical(fs::absolute(path, error), error); };
  for (size_t i = 0; i < outputs.size(); ++i) {
    for (size_t j = i + 1; j < outputs.size(); ++j) {
      if (outputs[i].second.empty() || outputs[j].second.empty()) continue;
      if (followed(outputs[i].second) != followed(outputs[j].second)) continue;
      return outputs[i].first + " and " + outputs[j].first + " name the same file " + outputs[i].second;
    }
  }
  return "";
}

// Returns an empty string, or why an output cannot be written.
std::string CheckOutputs(const RunOptions& options) {
  for (const absl::Status& status : {CheckRecordingOutput("--trace", options.trace, options.force),
                                     CheckOutput("--json-stats", options.json_stats, options.force),
                                     CheckOutput("--report", options.report, options.force)}) {
    if (!status.ok()) return std::string(status.message());
  }
  if (options.plan == "-") return std::string(CheckOutput("--plan", options.plan, true).message());
  if (!options.plan.empty() && options.plan.find('%') == std::string::npos) {
    const std::string reason = CheckPlanFile(options.plan);
    if (!reason.empty()) return "--plan " + options.plan + ": " + reason;
  }
  const auto launches = options.variables.find("HOTPACK_LAUNCHES");
  if (options.trace.empty() && options.report.empty() && launches != options.variables.end() &&
      launches->second == "1") {
    return "--launches needs --trace FILE or --report FILE: launches are recorded there";
  }
  return SameOutput({{"--trace", options.trace},
                     {"--json-stats", options.json_stats},
                     {"--report", options.report},
                     {"--plan", options.plan}});
}

// A program with NVIDIA's runtime inside fails with that runtime's error, or goes on without a device. Explains why.
void ExplainFailure(const RunOptions& options, const RunLibraries& libraries, const std::string& program,
                    const std::vector<ProcessStats>& processes, int code) {
  const bool asked = !processes.empty() && processes.front().stats.requests > 0;
  if (!options.simulate || (asked && code == 0) || !HasNvidiaRuntimeInside(program)) return;
  FailRun(options, code,
          options.command.front() + " has NVIDIA's runtime linked in (libcudart_static), which the simulated device " +
              "cannot run; link it with -cudart shared, or with -L" + libraries.simgpu_directory +
              " (libcudart_static.a there)");
}

// Reports why an output could not be written. Keeps the program's own exit code if that is a failure.
int FailedOutput(const RunOptions& options, const std::string& reason, int code) {
  FailRun(options, 2, reason);
  return code == 0 ? 2 : code;
}

// Returns why the recording of --trace is missing or ends before the program; empty if it is whole, or if no process
// had anything to record. A size limit is the user's own wish and no fault.
std::string FaultOfRecording(const RunOptions& options, const std::vector<ProcessStats>& processes) {
  if (options.trace.empty() || processes.empty() || processes.front().stats.requests == 0) return "";
  std::error_code error;
  const std::string path = RecordingPath(options, "");
  if (!fs::exists(path, error)) return MissingBecause(path);
  return EndedByFullDisk(path) ? CutBecause(path) : "";
}

// Returns what is wrong if a process held more than --fail-above allows; empty: none did.
std::string HeldAbove(const RunOptions& options, const std::vector<ProcessStats>& processes) {
  if (options.fail_above.empty()) return "";
  uint64_t most = 0;
  for (const ProcessStats& process : processes) most = std::max(most, process.stats.reserved_peak);
  if (most <= static_cast<uint64_t>(*ParseSize(options.fail_above))) return "";
  return "--fail-above: the most held, " + FormatSize(most) + ", is above " + options.fail_above;
}

int Report(const RunOptions& options, const std::string& directory, const std::vector<ProcessStats>& processes,
           const PlanBefore& plan_before, int code) {
  const CheckerTotals totals = options.simulate ? ReadCheckerFile(CheckerReportPath(directory)) : CheckerTotals{};
  const CheckerTotals* checker = options.simulate ? &totals : nullptr;
  hotpack_stats none = {};
  none.steady_iteration = -1;
  const hotpack_stats& stats = processes.empty() ? none : processes.front().stats;
  const ProgramSections sections = ReadSections(directory, processes);
  const std::string json = StatsJson(stats, checker, sections);
  std::string reason;
  const RunReport report = WriteRunReport(options, directory, processes, json, sections, &reason);
  if (!options.quiet) {
    const std::optional<PytorchHeld> pytorch = PytorchWouldHold(options, directory, processes);
    fprintf(stderr, "%s\n",
            SummaryLine(options, processes, code, checker, report, pytorch,
                        code == 0 ? PlanNote(options, plan_before, stats) : "")
                .c_str());
    fputs(LoadCurve(options, directory, processes).c_str(), stderr);
  }
  if (code == 0) KeepPlanFigures(options, plan_before, stats);
  if (const std::string fault = FaultOfRecording(options, processes); !fault.empty()) {
    code = FailedOutput(options, "--trace " + options.trace + ": " + fault, code);
  }
  if (report == RunReport::kFailed) code = FailedOutput(options, "--report " + options.report + ": " + reason, code);
  if (!options.json_stats.empty()) {
    const absl::Status status = WriteFile(options.json_stats, json);
    if (!status.ok()) code = FailedOutput(options, "--json-stats " + std::string(status.message()), code);
  }
  if (const std::string excess = HeldAbove(options, processes); !excess.empty()) {
    FailRun(options, kExitFailed, excess);
    if (code == 0) code = kExitFailed;
  }
  return code == 0 && totals.reports > 0 ? 1 : code;
}

int Run(const RunOptions& options) {
  const std::string reason = CheckOutputs(options);
  if (!reason.empty()) return FailRun(options, 2, reason);
  const PlanBefore plan_before = ReadPlanBefore(options);
  const TemporaryDirectory directory;
  int code = 0;
  const std::optional<FinishedProgram> finished = RunProgram(options, directory.path(), &code);
  if (!finished) return code;
  const std::vector<ProcessStats> processes = ReadStatsDirectory(directory.path());
  ExplainFailure(options, finished->libraries, finished->path, processes, finished->code);
  return Report(options, directory.path(), processes, plan_before, finished->code);
}

}  // namespace

void AddRunCommand(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand("run", "Runs a program under hotpack: hotpack run [options] -- CMD ...");
  auto options = std::make_shared<RunOptions>();
  AddSimulateOptions(command, "Run on the simulated device; no GPU is needed", options.get());
  command->add_flag("--keep-caching", options->keep_caching,
                    "Leave PyTorch's and JAX's own caching on, which hotpack.enable() replaces anyway");
  command->add_flag("--compatibility", options->compatibility,
                    "Do not make hotpack PyTorch's allocator; its requests come through the driver, one by one");
  AddOutputOption(command, "--trace", &options->trace, "Record the program's allocations in this file");
  AddOutputOption(command, "--report", &options->report,
                  "Write a page that shows the packed iteration and the run (hotpack report)");
  AddOutputOption(command, "--json-stats", &options->json_stats, "Write the figures of the run to this file");
  command
      ->add_flag("-q,--quiet", options->quiet,
                 "No line at the end of a run (nor with HOTPACK_QUIET=1); errors are still reported")
      ->envname("HOTPACK_QUIET");
  command
      ->add_option("--fail-above", options->fail_above,
                   "Exit with 1, and a line, if a process held more than this size, also where the program succeeded")
      ->check(SizeOption());
  AddForceFlag(command, &options->force)->description("Write over files that are there");
  AddOptionFlags(command, options.get());
  AddOutputOption(command, "--plan", &options->plan,
                  "Begin with the plan that an earlier run left in this file, and leave one");
  CLI::Option* first = AddProgram(command);
  command->footer(
      "The exit code is the program's; 128 and the number of the signal that ended it.\n"
      "Example:\n  hotpack run --simulate --trace job.trace -- python train.py\n"
      "  hotpack run --simulate --report out.html -- python train.py");
  command->callback([command, first, options, exit_code] {
    std::string reason = TakeProgram(*command, *first, options.get());
    if (reason.empty()) reason = CheckOptionFlags(*command, options.get());
    *exit_code = reason.empty() ? Run(*options) : FailRun(*options, 2, reason);
  });
}

}  // namespace hotpack
