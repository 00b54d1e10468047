#include "tests/support/subprocess.h"

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tools/cli/child_process.h"

namespace hotpack_test {

Outcome RunProgram(const std::vector<std::string>& command, const std::map<std::string, std::string>& environment) {
  const TemporaryDirectory directory;
  const std::string out = directory.path() + "/out", err = directory.path() + "/err";
  const pid_t pid = fork();
  if (pid == 0) hotpack::Execute(command, environment, out, err);
  // A hang is a failure, not a wait.
  const auto end = hotpack::WaitUntil(pid, std::chrono::steady_clock::now() + std::chrono::seconds(120));
  return {end ? hotpack::ExitCode(end->status) : 127, ReadFile(out), ReadFile(err)};
}

std::string SanitizerPreload() {
  const std::string runtime = HOTPACK_SANITIZER_RUNTIME;
  return runtime.empty() ? "" : runtime + ":";
}

TemporaryDirectory::TemporaryDirectory() {
  path_ = (std::filesystem::temp_directory_path() / "hotpack-test-XXXXXX").string();
  if (mkdtemp(path_.data()) == nullptr) abort();
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code error;
  std::filesystem::remove_all(path_, error);
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace hotpack_test
