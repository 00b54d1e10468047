// What `hotpack run`, `record` and `doctor` have in common: a program of the user's under the preload.
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

// A directory of our own for what the processes leave; removed with what is in it, also by a signal that ends this
// process.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::string& path() const { return path_; }  // empty: could not be made

 private:
  std::string path_;
  std::optional<RemovedAtSignal> removed_at_signal_;
};

// The positional CMD of a subcommand, and that what follows it is left alone. Only the program's name is an option to
// CLI11: a list of positionals would take "[1,2]" apart.
CLI::Option* AddProgram(CLI::App* command);

// Empty, with options->command filled in from that option and the rest of the command line; or what is wrong with it.
// Behind "--" nothing is taken for an option of ours.
std::string TakeProgram(const CLI::App& command, const CLI::Option& first, RunOptions* options);

// One line on stderr, "hotpack SUBCOMMAND: message". Returns the code.
int FailRun(const RunOptions& options, int code, const std::string& message);

struct FinishedProgram {
  std::string path;  // of the executable
  RunLibraries libraries;
  int code = 0;  // its exit code, or 128 + signal
};

// Runs the program of `options` to its end. `directory`: what PrepareEnvironment takes. Nothing, and *code, if it could
// not be started, which has been said.
std::optional<FinishedProgram> RunProgram(const RunOptions& options, const std::string& directory, int* code);

}  // namespace hotpack
