// HiGHS, for tests that have it solve exported models.
#pragma once

#include <string>
#include <vector>

#include "tests/preload/subprocess.h"

namespace hotpack_test {

struct HighsModel {
  std::string model;     // a file, LP or MPS
  std::string solution;  // the file to write
  int style = 0;         // of that file: 0 raw, 1 pretty, 4 sparse
};

inline bool Runs(const std::vector<std::string>& command) { return RunProgram(command, {{"LD_PRELOAD", ""}}).code == 0; }

// A Python that has highspy: of the build (tools/test puts it there), else the system's. Empty if there is none.
inline std::string PythonWithHighs() {
  for (const std::string python : {HOTPACK_BINARY_DIR "/solvers/bin/python3", "python3"}) {
    if (Runs({"/bin/sh", "-c", "\"$0\" -c 'import highspy' 2>/dev/null", python})) return python;
  }
  return "";
}

// To the optimum, all models in one process: starting Python takes longer than solving. Exit code 124 after 200 seconds.
inline Outcome SolveByHighs(const std::string& python, const std::vector<HighsModel>& models) {
  constexpr const char* kProgram = R"(
import sys, highspy
for model, solution, style in zip(sys.argv[1::3], sys.argv[2::3], sys.argv[3::3]):
    highs = highspy.Highs()
    highs.setOptionValue('output_flag', False)
    highs.setOptionValue('threads', 1)
    highs.setOptionValue('mip_rel_gap', 0.0)
    if highs.readModel(model) != highspy.HighsStatus.kOk: sys.exit(model + ' is not read without a warning')
    highs.run()
    highs.writeSolution(solution, int(style))
)";
  std::vector<std::string> command = {"/bin/sh", "-c", "exec timeout 200 \"$0\" \"$@\"", python, "-c", kProgram};
  for (const HighsModel& each : models) command.insert(command.end(), {each.model, each.solution, std::to_string(each.style)});
  return RunProgram(command);
}

}  // namespace hotpack_test
