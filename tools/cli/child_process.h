// The programs that this process starts: their arguments, their environment, their end.
#pragma once

#include <sys/types.h>
#include <sys/wait.h>

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace hotpack {

// `status`, of waitpid, as a shell gives it: the exit status, or 128 + signal if the process was killed.
inline int ExitCode(int status) { return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status); }

// `words` as execv takes them. The pointers are into `words`, which must outlive them.
std::vector<char*> Arguments(const std::vector<std::string>& words);

// In a child after fork: becomes `command` (an absolute path or a name in PATH first), with its standard output and its
// standard error in the files `out` and `err`. `environment`: variables to set, or to remove if empty, in addition to
// this process's. Ends with status 127 if the program cannot be started; `err` then has the reason.
[[noreturn]] void Execute(const std::vector<std::string>& command,
                          const std::map<std::string, std::string>& environment, const std::string& out,
                          const std::string& err);

// How a child that is over its deadline ends: SIGTERM, so that it can still write what it has, then SIGKILL.
inline constexpr std::chrono::milliseconds kTerminationGrace{1000};  // from SIGTERM to SIGKILL
inline constexpr std::chrono::milliseconds kKillGrace{5000};         // from SIGKILL until the child is given up

struct ChildEnd {
  int status = 0;          // of waitpid
  bool timed_out = false;  // told to end at the deadline
  bool given_up = false;   // SIGKILL did not end it, as in a call of a driver that hangs; `status` is as if it had
};

// Waits for the end of the child `pid`. Ends it at the deadline; with `with_group`, all processes of its group. Always
// returns: at the latest kTerminationGrace and kKillGrace after the deadline. Returns nothing if `pid` is no child of
// this process. Polls, because waitpid has no deadline. `tick`: called between two polls, if not empty.
std::optional<ChildEnd> WaitUntil(pid_t pid, std::chrono::steady_clock::time_point deadline, bool with_group = false,
                                  const std::function<void()>& tick = {});

}  // namespace hotpack
