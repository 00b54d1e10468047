// Runs a client of libhotpack_torch.so on the simulated device: with libhotpack.so alone, or under the preload.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/preload/simulate.h"

namespace hotpack_test {

struct TorchRun {
  Outcome outcome;
  std::string reports;  // of the checker
  std::string calls;    // NAME CALLS, a line each
};

// `how`: "alone" or "preload". `command`: a program of this folder, and its arguments. Two devices unless `environment`
// says otherwise.
inline TorchRun RunTorchClient(const std::string& how, std::vector<std::string> command,
                               const std::map<std::string, std::string>& more = {}) {
  const TemporaryDirectory directory;
  std::map<std::string, std::string> environment = {{"SIMGPU_COUNT_FILE", directory.path() + "/calls"},
                                                    {"SIMGPU_DEVICES", "2"},
                                                    {"HOTPACK", ""},
                                                    {"HOTPACK_ARENA", ""}};
  for (const auto& [name, value] : more) environment[name] = value;
  const std::string libraries = HOTPACK_BINARY_DIR "/lib";
  command.front() = HOTPACK_TEST_DIR "/" + command.front();
  TorchRun run;
  if (how == "preload") {
    environment["LD_LIBRARY_PATH"] = libraries;
    run.outcome = Simulate(command, environment).outcome;
  } else {
    environment["SIMGPU_REPORT_FILE"] = directory.path() + "/reports";
    environment["LD_LIBRARY_PATH"] = HOTPACK_SIMGPU_LIBRARIES ":" + libraries;
    run.outcome = RunProgram(command, environment);
    run.reports = ReadFile(directory.path() + "/reports");
  }
  run.calls = ReadFile(directory.path() + "/calls");
  return run;
}

}  // namespace hotpack_test
