#include "tools/run/run_child.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "tools/cli/child_process.h"

namespace hotpack {
namespace {

constexpr int kForwarded[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCONT, SIGWINCH, SIGALRM};
std::atomic<pid_t> child{0};

void Forward(int number, siginfo_t* info, void*) {
  const int saved = errno;
  const pid_t pid = child.load();
  if (pid > 0 && info->si_code != SI_KERNEL) kill(pid, number);  // SI_KERNEL: the terminal, which reaches the child too
  errno = saved;
}

// In the child, which must not have this process's signal handlers.
void ForgetHandlers() {
  for (const int number : kForwarded) {
    struct sigaction action;
    if (sigaction(number, nullptr, &action) == 0 && action.sa_handler != SIG_IGN) signal(number, SIG_DFL);
  }
}

// In the child; returns only if exec failed.
void Execute(const std::string& path, const std::vector<std::string>& arguments, int report) {
  execv(path.c_str(), Arguments(arguments).data());
  const int code = errno;
  if (write(report, &code, sizeof(code)) != static_cast<ssize_t>(sizeof(code))) _exit(126);
  _exit(code == ENOENT ? 127 : 126);
}

int WaitFor(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return 1;
  }
  return ExitCode(status);
}

}  // namespace

int RunChild(const std::string& path, const std::vector<std::string>& arguments, bool output_to_stderr,
             std::string* error) {
  int report[2];
  if (pipe2(report, O_CLOEXEC) != 0) {
    *error = strerror(errno);
    return 126;
  }
  // Blocked until the handlers know the child, so that no signal is lost in between.
  sigset_t blocked, before;
  sigemptyset(&blocked);
  for (const int number : kForwarded) sigaddset(&blocked, number);
  sigprocmask(SIG_BLOCK, &blocked, &before);
  const pid_t pid = fork();
  if (pid == 0) {
    ForgetHandlers();
    sigprocmask(SIG_SETMASK, &before, nullptr);
    if (output_to_stderr) dup2(STDERR_FILENO, STDOUT_FILENO);
    Execute(path, arguments, report[1]);
  }
  close(report[1]);
  if (pid < 0) {
    *error = strerror(errno);
    close(report[0]);
    sigprocmask(SIG_SETMASK, &before, nullptr);
    return 126;
  }
  child.store(pid);
  struct sigaction action = {};
  action.sa_sigaction = Forward;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  std::vector<std::pair<int, struct sigaction>> replaced;
  for (const int number : kForwarded) {
    struct sigaction old;
    sigaction(number, nullptr, &old);
    if (old.sa_handler == SIG_IGN) continue;  // nohup stays nohup
    replaced.emplace_back(number, old);
    sigaction(number, &action, nullptr);
  }
  sigprocmask(SIG_SETMASK, &before, nullptr);
  int failure = 0;
  ssize_t got = 0;
  while ((got = read(report[0], &failure, sizeof(failure))) < 0 && errno == EINTR) {
  }
  close(report[0]);
  if (got == static_cast<ssize_t>(sizeof(failure))) *error = strerror(failure);
  const int code = WaitFor(pid);
  child.store(0);
  for (const auto& [number, old] : replaced) sigaction(number, &old, nullptr);  // later signals are for this process
  return code;
}

}  // namespace hotpack
