#include "tests/gpu/child.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <sstream>
#include <vector>

#include "tools/cli/child_process.h"

extern char** environ;

namespace hotpack::gpu {
namespace {

using Clock = std::chrono::steady_clock;

// Until the other end is closed or the deadline has come.
std::string ReadUntil(int file, Clock::time_point deadline) {
  std::string text;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return text;
    pollfd entry = {file, POLLIN, 0};
    if (poll(&entry, 1, static_cast<int>(left)) <= 0) continue;
    char buffer[4096];
    const ssize_t got = read(file, buffer, sizeof buffer);
    if (got <= 0) return text;
    text.append(buffer, static_cast<size_t>(got));
  }
}

int Spawn(const std::string& name, int output) {
  std::string program = "/proc/self/exe", option = "--child", value = name;
  char* arguments[] = {program.data(), option.data(), value.data(), nullptr};
  std::string no_check = "SIMGPU_CHECK=0";
  std::vector<char*> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (strncmp(*entry, "SIMGPU_CHECK=", 13) != 0) environment.push_back(*entry);
  }
  environment.push_back(no_check.data());
  environment.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, program.c_str(), &actions, nullptr, arguments, environment.data());
  posix_spawn_file_actions_destroy(&actions);
  return error == 0 ? pid : -1;
}

}  // namespace

std::string ChildOutcome::Value(const std::string& key) const {
  const auto found = values.find(key);
  return found != values.end() ? found->second : "nothing";
}

std::string WaitForEnd(int pid, int seconds) {
  const auto end = WaitUntil(pid, Clock::now() + std::chrono::seconds(seconds));
  if (!end) return "no such process";
  if (end->timed_out) return "no end within " + std::to_string(seconds) + " s";
  if (WIFSIGNALED(end->status)) return "signal " + std::to_string(WTERMSIG(end->status));
  return "exit " + std::to_string(WEXITSTATUS(end->status));
}

ChildOutcome RunChild(const std::string& name, int seconds) {
  ChildOutcome outcome;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    outcome.end = "no pipe";
    return outcome;
  }
  const int pid = Spawn(name, ends[1]);
  close(ends[1]);
  if (pid < 0) {
    close(ends[0]);
    outcome.end = "not started";
    return outcome;
  }
  std::istringstream lines(ReadUntil(ends[0], Clock::now() + std::chrono::seconds(seconds)));
  close(ends[0]);
  outcome.end = WaitForEnd(pid, seconds);
  for (std::string line; std::getline(lines, line);) {
    const size_t equals = line.find('=');
    if (equals != std::string::npos) outcome.values[line.substr(0, equals)] = line.substr(equals + 1);
  }
  return outcome;
}

}  // namespace hotpack::gpu
