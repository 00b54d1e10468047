// HiGHS, for tests that solve exported models with it.
#pragma once

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/support/subprocess.h"

namespace hotpack_test {

struct HighsModel {
  std::string model;     // a file, LP or MPS
  std::string solution;  // the file to write
  int style = 0;         // of that file: 0 raw, 1 pretty, 4 sparse
  bool no_time = false;  // to end before it begins: without a solution
};

inline bool Runs(const std::vector<std::string>& command) {
  return RunProgram(command, {{"LD_PRELOAD", ""}}).code == 0;
}

// A Python that has highspy: $HOTPACK_HIGHS_PYTHON, else that of the build (tools/test puts it there), else the
// system's. Empty if there is none.
inline std::string PythonWithHighs() {
  const char* named = std::getenv("HOTPACK_HIGHS_PYTHON");
  std::vector<std::string> candidates = {HOTPACK_BINARY_DIR "/solvers/bin/python3", "python3"};
  if (named != nullptr && *named != 0) candidates = {named};
  for (const std::string& python : candidates) {
    if (Runs({"/bin/sh", "-c", "\"$0\" -c 'import highspy' 2>/dev/null", python})) return python;
  }
  return "";
}

// To the optimum, all models in one process: starting Python takes longer than solving. Exit code 124 after 200
// seconds.
inline Outcome SolveByHighs(const std::string& python, const std::vector<HighsModel>& models) {
  constexpr const char* kProgram = R"(
import sys, highspy
for model, solution, style, no_time in zip(*(sys.argv[i::4] for i in (1, 2, 3, 4))):
    highs = highspy.Highs()
    highs.setOptionValue('output_flag', False)
    highs.setOptionValue('threads', 1)
    highs.setOptionValue('mip_rel_gap', 0.0)
    if int(no_time): highs.setOptionValue('time_limit', 0.0)
    if highs.readModel(model) != highspy.HighsStatus.kOk: sys.exit(model + ' is not read without a warning')
    highs.run()
    highs.writeSolution(solution, int(style))
)";
  std::vector<std::string> command = {"/bin/sh", "-c", "exec timeout 200 \"$0\" \"$@\"", python, "-c", kProgram};
  for (const HighsModel& each : models) {
    command.insert(command.end(), {each.model, each.solution, std::to_string(each.style), each.no_time ? "1" : "0"});
  }
  return RunProgram(command);
}

}  // namespace hotpack_test
