// Programs under `hotpack run --simulate`.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/support/subprocess.h"

namespace hotpack_test {

struct SimulateResult {
  Outcome outcome;
  nlohmann::json stats;  // of --json-stats; null if there are none
};

// `more`: of the environment.
inline SimulateResult Simulate(const std::vector<std::string>& program,
                               const std::map<std::string, std::string>& more = {}) {
  const TemporaryDirectory directory;
  std::vector<std::string> command = {
      HOTPACK_COMMAND, "run", "--simulate", "--json-stats", directory.path() + "/json", "--"};
  command.insert(command.end(), program.begin(), program.end());
  std::map<std::string, std::string> environment = {{"HOTPACK", ""}, {"LD_LIBRARY_PATH", ""}, {"HOTPACK_ARENA", ""}};
  for (const auto& [name, value] : more) environment[name] = value;
  SimulateResult result{RunProgram(command, environment), {}};
  const std::string text = ReadFile(directory.path() + "/json");
  if (!text.empty()) result.stats = nlohmann::json::parse(text);
  return result;
}

}  // namespace hotpack_test
