#include "tools/run.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string_view>

#include "preload/option_table.h"
#include "tools/run_child.h"
#include "tools/run_linked.h"
#include "tools/run_report.h"
#include "tools/run_setup.h"
#include "tools/show_plan.h"

namespace hotpack {
namespace {

namespace fs = std::filesystem;

int Fail(int code, const std::string& message) {
  fprintf(stderr, "hotpack run: %s\n", message.c_str());
  return code;
}

// A directory of our own for the statistics; removed with what is in it.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    const char* base = getenv("TMPDIR");
    path_ = std::string(base != nullptr && base[0] != '\0' ? base : "/tmp") + "/hotpack-XXXXXX";
    if (mkdtemp(path_.data()) == nullptr) path_.clear();
  }
  ~TemporaryDirectory() {
    std::error_code error;
    if (!path_.empty()) fs::remove_all(path_, error);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::string& path() const { return path_; }  // empty: could not be made

 private:
  std::string path_;
};

// The program is `first` (if there was one) and what is left of the command line behind it, word for word. Behind "--"
// nothing is taken for an option of ours.
std::string TakeCommand(const CLI::Option& first, std::vector<std::string> rest, RunOptions* options) {
  const bool marked = !rest.empty() && rest.front() == "--";
  if (!marked && !rest.empty() && rest.front().size() > 1 && rest.front().front() == '-') {
    return "unknown option " + rest.front() + " (the program's own options go behind --)";
  }
  if (first.count() == 0) return "no program given: hotpack run [options] -- CMD ...";
  if (marked) rest.erase(rest.begin());
  options->command = std::move(rest);
  options->command.insert(options->command.begin(), first.results().front());
  return "";
}

// The flags that are the library's own options, from the table that it reads them by. --trace and --plan are more than a
// variable.
bool IsPlainOption(const OptionRow& row) {
  return row.flag[0] != '\0' && std::string_view(row.flag) != "--trace" && std::string_view(row.flag) != "--plan";
}

void AddOptionFlags(CLI::App* command, RunOptions* options) {
  for (const OptionRow& row : kOptionRows) {
    if (!IsPlainOption(row)) continue;
    std::string meaning = row.meaning;
    std::erase(meaning, '`');
    if (std::string_view(row.values) == "0 or 1") {
      command->add_flag_callback(row.flag, [options, &row] { options->variables[row.variable] = "1"; }, meaning);
      continue;
    }
    command->add_option(row.flag, options->variables[row.variable], meaning + " (" + row.values + ")")
        ->default_str(row.fallback);
  }
}

// Empty, or the flag that has no such value. Flags that were not given are taken out: the environment's hold.
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
  return "";
}

// Empty, or why a plan can neither be read from `path` nor saved there. One that cannot be used is the library's affair: it
// is replaced.
std::string CheckPlanFile(const std::string& path) {
  const std::string reason = CheckWritable(path);
  std::error_code error;
  if (!reason.empty() || !fs::exists(path, error) || fs::file_size(path, error) == 0) return reason;
  return LooksLikePlan(path) ? "" : "is there, and is no plan file";
}

// Empty, or why an output cannot be written.
std::string CheckOutputs(const RunOptions& options) {
  for (const auto& [name, path] : {std::pair{"--trace", options.trace}, {"--json-stats", options.json_stats}}) {
    if (path.empty()) continue;
    const std::string reason = CheckWritable(path);
    if (!reason.empty()) return std::string(name) + " " + path + ": " + reason;
  }
  if (!options.plan.empty() && options.plan.find('%') == std::string::npos) {
    const std::string reason = CheckPlanFile(options.plan);
    if (!reason.empty()) return "--plan " + options.plan + ": " + reason;
  }
  const auto launches = options.variables.find("HOTPACK_LAUNCHES");
  if (options.trace.empty() && launches != options.variables.end() && launches->second == "1") {
    return "--launches needs --trace FILE: launches are recorded there";
  }
  std::error_code error;
  if (!options.trace.empty() && fs::weakly_canonical(options.trace, error) == fs::weakly_canonical(options.json_stats, error)) {
    return "--trace and --json-stats name the same file " + options.trace;
  }
  return "";
}

std::string CheckDevice(const RunOptions& options, const RunLibraries& libraries) {
  if (libraries.preload.empty()) return "libhotpack_preload.so.0 was not found next to this command (../lib)";
  if (options.simulate) {
    if (libraries.simgpu_directory.empty()) return "the simulated device was not found next to this command (../lib/simgpu)";
    return "";
  }
  if (HasDriver()) return "";
  return "no NVIDIA driver here (libcuda.so.1 cannot be loaded); --simulate runs the program on a simulated device";
}

bool WriteText(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::trunc);
  file << text;
  file.close();
  return file.good();
}

// A program with NVIDIA's runtime inside fails with whatever its runtime calls it, or goes on without a device: say why.
void ExplainFailure(const RunOptions& options, const RunLibraries& libraries, const std::string& program,
                    const std::vector<ProcessStats>& processes, int code) {
  const bool asked = !processes.empty() && processes.front().stats.requests > 0;
  if (!options.simulate || (asked && code == 0) || !HasNvidiaRuntimeInside(program)) return;
  Fail(code, options.command.front() + " has NVIDIA's runtime linked in (libcudart_static), which the simulated device " +
                 "cannot run; link it with -cudart shared, or with -L" + libraries.simgpu_directory +
                 " (libcudart_static.a there)");
}

int Report(const RunOptions& options, const std::string& directory, const std::vector<ProcessStats>& processes, int code) {
  const CheckerTotals totals = options.simulate ? ReadCheckerFile(CheckerReportPath(directory)) : CheckerTotals{};
  const CheckerTotals* checker = options.simulate ? &totals : nullptr;
  fprintf(stderr, "%s\n", SummaryLine(options, processes, checker).c_str());
  if (!options.json_stats.empty()) {
    hotpack_stats none = {};
    none.steady_iteration = -1;
    const std::string json = StatsJson(processes.empty() ? none : processes.front().stats, checker);
    if (!WriteText(options.json_stats, json)) {
      Fail(2, "--json-stats " + options.json_stats + ": cannot be written");
      if (code == 0) code = 2;
    }
  }
  return code == 0 && totals.reports > 0 ? 1 : code;
}

int Run(const RunOptions& options) {
  std::string reason = CheckOutputs(options);
  if (!reason.empty()) return Fail(2, reason);
  bool not_executable = false;
  const std::string program = FindProgram(options.command.front(), &not_executable);
  if (program.empty()) {
    return not_executable ? Fail(126, options.command.front() + ": not an executable file")
                          : Fail(127, options.command.front() + ": command not found");
  }
  const RunLibraries libraries = FindLibraries();
  reason = CheckDevice(options, libraries);
  if (!reason.empty()) return Fail(2, reason);
  const TemporaryDirectory directory;
  if (directory.path().empty()) return Fail(2, std::string("no temporary directory: ") + strerror(errno));
  reason = PrepareEnvironment(options, libraries, directory.path());
  if (!reason.empty()) return Fail(2, reason);
  // The first process that records finds the name free (preload/arena_factory.cc).
  if (!options.trace.empty() && fs::is_regular_file(options.trace)) unlink(options.trace.c_str());
  const int code = RunChild(program, options.command, &reason);
  if (!reason.empty()) return Fail(code, options.command.front() + ": " + reason);
  const std::vector<ProcessStats> processes = ReadStatsDirectory(directory.path());
  ExplainFailure(options, libraries, program, processes, code);
  return Report(options, directory.path(), processes, code);
}

}  // namespace

void AddRunCommand(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand("run", "run a program under hotpack: hotpack run [options] -- CMD ...");
  auto options = std::make_shared<RunOptions>();
  command->add_flag("--simulate", options->simulate, "run on the simulated device; no GPU is needed");
  command->add_flag("--keep-caching", options->keep_caching,
                    "leave PyTorch's and JAX's own caching on, which hotpack.enable() replaces anyway");
  command->add_option("--trace", options->trace, "record the program's allocations in this file");
  command->add_option("--json-stats", options->json_stats, "write the figures of the run to this file");
  AddOptionFlags(command, options.get());
  command->add_option("--plan", options->plan, "begin with the plan that an earlier run left in this file, and leave one");
  // Only the program's name is an option to CLI11: a list of positionals would take "[1,2]" apart.
  CLI::Option* first = command->add_option("CMD", "the program; its own options go behind --")->expected(1);
  command->prefix_command();  // what follows it is left alone
  command->callback([command, first, options, exit_code] {
    std::string reason = TakeCommand(*first, command->remaining(), options.get());
    if (reason.empty()) reason = CheckOptionFlags(*command, options.get());
    *exit_code = reason.empty() ? Run(*options) : Fail(2, reason);
  });
}

}  // namespace hotpack
