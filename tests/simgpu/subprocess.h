// Runs a test program in its own process: its exit status, its reports and its output on stderr.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace simgpu_test {

struct Outcome {
  int status = -1;                   // exit status; 128 + signal
  std::string error;                 // stderr
  std::string output;                // stdout
  std::vector<std::string> reports;  // lines of the report file that are reports
  std::string kinds;                 // their kinds, without repeats: "overlap use-after-free"
};

inline std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// `settings`: NAME=VALUE words put before the command.
inline Outcome RunProgram(const std::string& command, const std::string& settings = "") {
  char directory[] = "/tmp/simgpu_test_XXXXXX";
  if (mkdtemp(directory) == nullptr) return {};
  const std::string base = directory;
  const std::string line = "env SIMGPU_REPORT_FILE=" + base + "/reports " + settings + " " + command + " >" + base +
                           "/out 2>" + base + "/err";
  const int raw = std::system(line.c_str());
  Outcome outcome;
  outcome.status = WIFEXITED(raw) ? WEXITSTATUS(raw) : 128 + WTERMSIG(raw);
  outcome.error = ReadFile(base + "/err");
  outcome.output = ReadFile(base + "/out");
  std::istringstream reports(ReadFile(base + "/reports"));
  const std::string prefix = "simgpu: REPORT ";
  for (std::string text; std::getline(reports, text);) {
    if (!text.starts_with(prefix)) continue;
    outcome.reports.push_back(text);
    const std::string kind = text.substr(prefix.size(), text.find(':', prefix.size()) - prefix.size());
    if ((" " + outcome.kinds + " ").find(" " + kind + " ") == std::string::npos) {
      outcome.kinds += (outcome.kinds.empty() ? "" : " ") + kind;
    }
  }
  for (const char* name : {"/err", "/out", "/reports"}) unlink((base + name).c_str());
  rmdir(directory);
  return outcome;
}

}  // namespace simgpu_test
