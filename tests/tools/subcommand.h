// Calls a subcommand on recordings of the repository, for tests of what it prints.
#pragma once

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/subprocess.h"

namespace hotpack_test {

inline const char kPerceptron[] = HOTPACK_SOURCE_DIR "/tests/data/mlp-adam.csv";
inline const char kCarried[] = HOTPACK_SOURCE_DIR "/tests/data/cnn-carried.csv";

// Runs `hotpack NAME ARGUMENTS...`, without a preloaded library.
inline Outcome RunSubcommand(const std::string& name, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {HOTPACK_COMMAND, name});
  return RunProgram(arguments, {{"LD_PRELOAD", ""}});
}

// Parses what a command printed with --json. A test fails if it did not succeed.
inline nlohmann::json JsonOf(const Outcome& outcome) {
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return nlohmann::json::parse(outcome.out, nullptr, /*allow_exceptions=*/false);
}

}  // namespace hotpack_test
