#include "tools/check/child.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <set>
#include <vector>

#include "tools/cli/child_process.h"
#include "tools/cli/process_tree.h"

namespace hotpack::check {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::streamoff kKept = 2 << 20;

std::atomic<pid_t> running{0};

std::atomic<int> interrupted{0};

void OnSignal(int number) {
  const int saved = errno;
  interrupted.store(number);
  const pid_t group = running.load();
  if (group > 0) kill(-group, SIGKILL);
  errno = saved;
}

// Returns the first and the last part of a file.
std::string ReadEnds(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return "";
  const std::streamoff size = file.tellg();
  const auto read = [&](std::streamoff from, std::streamoff bytes) {
    std::string text(static_cast<size_t>(bytes), '\0');
    file.seekg(from);
    file.read(text.data(), bytes);
    text.resize(static_cast<size_t>(file.gcount()));
    return text;
  };
  if (size <= 2 * kKept) return read(0, size);
  return read(0, kKept) + "\n[...]\n" + read(size - kKept, kKept);
}

std::set<pid_t> OwnChildren() {
  const std::vector<int> children = Children(getpid());
  return {children.begin(), children.end()};
}

// Kills and reaps what the ended child left behind. This process is the reaper of all processes below it, so they
// become its children. `others`: children that are not to be killed.
void KillLeftovers(const std::set<pid_t>& others) {
  const Clock::time_point deadline = Clock::now() + kKillGrace;
  for (;;) {
    std::set<pid_t> left = OwnChildren();
    for (const pid_t other : others) left.erase(other);
    if (left.empty() || Clock::now() >= deadline) return;
    for (const pid_t pid : left) {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, WNOHANG);
    }
    usleep(2000);
  }
}

// In the child; does not return.
[[noreturn]] void ExecuteApart(const std::vector<std::string>& command,
                               const std::map<std::string, std::string>& environment, const std::string& out,
                               const std::string& err) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int input = open("/dev/null", O_RDONLY);
  if (input < 0) _exit(127);
  dup2(input, STDIN_FILENO);
  Execute(command, environment, out, err);
}

}  // namespace

Outcome RunChild(const std::vector<std::string>& command, const std::map<std::string, std::string>& environment,
                 double limit, const std::string& scratch, const OnTick& on_tick) {
  const std::string out = scratch + "/stdout", err = scratch + "/stderr";
  Outcome outcome;
  if (Interrupted() != 0) {
    outcome.code = 127;
    return outcome;
  }
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const std::set<pid_t> others = OwnChildren();
  const Clock::time_point begin = Clock::now();
  const pid_t pid = fork();
  if (pid == 0) ExecuteApart(command, environment, out, err);
  if (pid < 0) {
    outcome.code = 127;
    outcome.err = strerror(errno);
    return outcome;
  }
  setpgid(pid, pid);  // here too: the child may have to be killed before its own call
  running.store(pid);
  if (Interrupted() != 0) kill(-pid, SIGKILL);  // the signal came before the handler knew the child
  const auto deadline = begin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(limit));
  Clock::time_point next_tick = begin;
  const auto end = WaitUntil(pid, deadline, true, [&] {
    if (!on_tick || Clock::now() < next_tick) return;
    next_tick = Clock::now() + std::chrono::milliseconds(1000 / kTicksPerSecond);
    on_tick(err);
  });
  if (end) kill(-pid, SIGKILL);  // processes that it left behind
  running.store(0);
  std::set<pid_t> spared = others;
  if (end && end->given_up) spared.insert(pid);
  KillLeftovers(spared);
  outcome.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  outcome.code = end ? ExitCode(end->status) : 127;
  outcome.timed_out = end && end->timed_out;
  outcome.given_up = end && end->given_up;
  outcome.out = ReadEnds(out);
  outcome.err = ReadEnds(err);
  unlink(out.c_str());
  unlink(err.c_str());
  return outcome;
}

void KillChildOnSignals() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) signal(number, OnSignal);
}

int Interrupted() { return interrupted.load(); }

}  // namespace hotpack::check
