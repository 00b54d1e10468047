// Runs a program on the simulated device: its end, and the reports of the device's checker.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "tests/support/subprocess.h"

namespace simgpu_test {

using hotpack_test::ReadFile;

struct CheckedOutcome : hotpack_test::Outcome {
  std::vector<std::string> reports;  // lines of the report file that are reports
  std::string kinds;                 // their kinds, without repeats: "overlap use-after-free"
};

// `command`: of a shell. `settings`: NAME=VALUE words put before it.
inline CheckedOutcome RunChecked(const std::string& command, const std::string& settings = "") {
  const hotpack_test::TemporaryDirectory directory;
  const std::string file = directory.path() + "/reports";
  CheckedOutcome outcome{
      hotpack_test::RunProgram({"sh", "-c", "env SIMGPU_REPORT_FILE=" + file + " " + settings + " " + command}),
      {},
      {}};
  std::istringstream reports(ReadFile(file));
  const std::string prefix = "simgpu: REPORT ";
  for (std::string text; std::getline(reports, text);) {
    if (!text.starts_with(prefix)) continue;
    outcome.reports.push_back(text);
    const std::string kind = text.substr(prefix.size(), text.find(':', prefix.size()) - prefix.size());
    if ((" " + outcome.kinds + " ").find(" " + kind + " ") == std::string::npos) {
      outcome.kinds += (outcome.kinds.empty() ? "" : " ") + kind;
    }
  }
  return outcome;
}

}  // namespace simgpu_test
