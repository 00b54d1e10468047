// The common part of `hotpack run`, `record` and `doctor`: a program of the user under the preload.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/cli/interrupt.h"
#include "tools/run/run_setup.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace hotpack {

// A private directory for the files of the processes. Removed with its contents, also by a signal that ends this
// process.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::string& path() const { return path_; }  // empty: it could not be made

 private:
  std::string path_;
  std::optional<RemovedAtSignal> removed_at_signal_;
};

// Adds --simulate, with its text, and --memory, the simulated device's size.
void AddSimulateOptions(CLI::App* command, const std::string& meaning, RunOptions* options);

// Adds the positional CMD of a subcommand; arguments after it are the program's. Only the program's name is an option
// to CLI11, because a list of positionals would split "[1,2]".
CLI::Option* AddProgram(CLI::App* command);

// Fills options->command from that option and the rest of the command line. Returns an empty string or the error.
// Behind "--" no argument is an option of hotpack.
std::string TakeProgram(const CLI::App& command, const CLI::Option& first, RunOptions* options);

// Writes one line to stderr, "hotpack SUBCOMMAND: message". Returns `code`.
int FailRun(const RunOptions& options, int code, const std::string& message);

struct FinishedProgram {
  std::string path;  // of the executable
  RunLibraries libraries;
  int code = 0;  // its exit code, or 128 + signal
};

// Runs the program of `options` to its end. `directory`: as for PrepareEnvironment. Returns nothing, with *code set, if
// it could not be started, which was reported.
std::optional<FinishedProgram> RunProgram(const RunOptions& options, const std::string& directory, int* code);

}  // namespace hotpack
