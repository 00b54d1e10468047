#include "tools/cli/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace hotpack {

std::vector<char*> Arguments(const std::vector<std::string>& words) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  return arguments;
}

void Execute(const std::vector<std::string>& command, const std::map<std::string, std::string>& environment,
             const std::string& out, const std::string& err) {
  const int output = open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
  const int errors = open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
  if (output < 0 || errors < 0) _exit(127);
  dup2(output, STDOUT_FILENO);
  dup2(errors, STDERR_FILENO);
  for (const auto& [name, value] : environment) {
    if (value.empty()) {
      unsetenv(name.c_str());
    } else {
      setenv(name.c_str(), value.c_str(), 1);
    }
  }
  const std::vector<char*> arguments = Arguments(command);
  execvp(arguments[0], arguments.data());
  dprintf(STDERR_FILENO, "%s: %s\n", arguments[0], strerror(errno));
  _exit(127);
}

std::optional<ChildEnd> WaitUntil(pid_t pid, std::chrono::steady_clock::time_point deadline, bool with_group,
                                  const std::function<void()>& tick) {
  if (pid <= 0) return std::nullopt;  // waitpid and kill would take it for many processes
  ChildEnd end;
  const pid_t target = with_group ? -pid : pid;
  bool killed = false;
  useconds_t pause = 500;  // short for short children, long for long ones
  for (;;) {
    const pid_t ended = waitpid(pid, &end.status, WNOHANG);
    if (ended == pid) return end;
    if (ended < 0 && errno != EINTR) return std::nullopt;
    const auto late = std::chrono::steady_clock::now() - deadline;
    if (late >= late.zero() && !end.timed_out) {
      end.timed_out = true;
      kill(target, SIGTERM);
      kill(target, SIGCONT);  // a stopped process does not see SIGTERM
    }
    if (late >= kTerminationGrace && !killed) {
      killed = true;
      kill(target, SIGKILL);
    }
    if (late >= kTerminationGrace + kKillGrace) {
      end.given_up = true;
      end.status = SIGKILL;
      return end;
    }
    if (tick) tick();
    usleep(pause);
    if (pause < 20000) pause += pause / 4;
  }
}

}  // namespace hotpack
