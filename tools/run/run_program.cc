#include "tools/run/run_program.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "CLI/CLI.hpp"
#include "tools/cli/size_text.h"
#include "tools/run/run_child.h"

namespace hotpack {
namespace {

namespace fs = std::filesystem;

std::string CheckDevice(const RunOptions& options, const RunLibraries& libraries) {
  if (libraries.preload.empty()) return "libhotpack_preload.so.0 was not found next to this command (../lib)";
  if (options.simulate) {
    if (libraries.simgpu_directory.empty())
      return "the simulated device was not found next to this command (../lib/simgpu)";
    return "";
  }
  if (HasDriver() || (!options.graph.empty() && options.trace.empty())) return "";  // a step on the CPU has a graph too
  return "no NVIDIA driver here (libcuda.so.1 cannot be loaded); --simulate runs the program on a simulated device";
}

}  // namespace

TemporaryDirectory::TemporaryDirectory() {
  const char* base = getenv("TMPDIR");
  path_ = std::string(base != nullptr && base[0] != '\0' ? base : "/tmp") + "/hotpack-XXXXXX";
  if (mkdtemp(path_.data()) == nullptr) {
    path_.clear();
  } else {
    removed_at_signal_.emplace(path_);
  }
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code error;
  if (!path_.empty()) fs::remove_all(path_, error);
}

void AddSimulateOptions(CLI::App* command, const std::string& meaning, RunOptions* options) {
  constexpr int64_t kLeast = int64_t{2} << 20;  // the simulated device's page
  CLI::Option* simulate = command->add_flag("--simulate", options->simulate, meaning);
  // The simulated device reads units in its own way, so it gets bytes.
  command
      ->add_option_function<std::string>(
          "--memory", [options](const std::string& size) { options->memory = std::to_string(*ParseSize(size)); },
          "With --simulate: the memory of each device (default: SIMGPU_MEMORY, else 16G)")
      ->check(SizeOption())
      ->check([](const std::string& size) {
        return ParseSize(size).value_or(0) >= kLeast ? std::string() : "a device has at least 2M, not " + size;
      })
      ->needs(simulate);
}

CLI::Option* AddProgram(CLI::App* command) {
  command->prefix_command();
  return command->add_option("CMD", "The program; its own options go behind --")->expected(1);
}

std::string TakeProgram(const CLI::App& command, const CLI::Option& first, RunOptions* options) {
  std::vector<std::string> rest = command.remaining();
  const bool marked = !rest.empty() && rest.front() == "--";
  if (!marked && !rest.empty() && rest.front().size() > 1 && rest.front().front() == '-') {
    return "unknown option " + rest.front() + " (the program's own options go behind --)";
  }
  if (first.count() == 0) return "no program given: hotpack " + options->subcommand + " [options] -- CMD ...";
  if (marked) rest.erase(rest.begin());
  options->command = std::move(rest);
  options->command.insert(options->command.begin(), first.results().front());
  return "";
}

int FailRun(const RunOptions& options, int code, const std::string& message) {
  fprintf(stderr, "hotpack %s: %s\n", options.subcommand.c_str(), message.c_str());
  return code;
}

std::optional<FinishedProgram> RunProgram(const RunOptions& options, const std::string& directory, int* code) {
  const auto fail = [&](int with, const std::string& message) {
    *code = FailRun(options, with, message);
    return std::nullopt;
  };
  const std::string& name = options.command.front();
  bool not_executable = false;
  FinishedProgram finished;
  finished.path = FindProgram(name, &not_executable);
  if (finished.path.empty()) {
    return not_executable ? fail(126, name + ": not an executable file") : fail(127, name + ": command not found");
  }
  finished.libraries = FindLibraries();
  std::string reason = CheckDevice(options, finished.libraries);
  if (!reason.empty()) return fail(2, reason);
  if (directory.empty()) return fail(2, std::string("no temporary directory: ") + strerror(errno));
  reason = PrepareEnvironment(options, finished.libraries, directory);
  if (!reason.empty()) return fail(2, reason);
  // The first process that records must find the name free (preload/serve/arena_factory.cc).
  std::error_code error;
  const fs::path trace = fs::weakly_canonical(fs::absolute(options.trace, error), error);  // as HOTPACK_TRACE has it
  if (!options.trace.empty() && fs::is_regular_file(trace, error)) unlink(trace.c_str());
  finished.code = RunChild(finished.path, options.command, options.output_to_stderr, &reason);
  if (!reason.empty()) return fail(finished.code, name + ": " + reason);
  return finished;
}

}  // namespace hotpack
