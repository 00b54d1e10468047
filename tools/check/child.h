// A child process with a time limit.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace hotpack::check {

struct Outcome {
  int code = 0;            // exit status, 128 + signal if killed, 127 if it could not be started
  bool timed_out = false;  // ended by RunChild
  bool given_up = false;   // SIGKILL did not end it; it may still run
  double seconds = 0;
  std::string out;
  std::string err;
};

// Called while a child runs, at most `kTicksPerSecond` times a second, with the file of its standard error.
using OnTick = std::function<void(const std::string& err)>;
inline constexpr int kTicksPerSecond = 4;

// Runs `command` (an absolute path or a name in PATH first) and waits for its end, at most `limit` seconds. Then ends
// the child's group: SIGTERM, a second later SIGKILL. Kills every process below the child, also those in groups and
// sessions of their own. Returns at most eleven seconds after the limit, even if a process cannot be killed.
// `environment`: variables to set, or to remove if empty, in addition to this process's. `scratch`: a directory for its
// output. Keeps the first and the last two mebibytes of each stream. One child at a time.
Outcome RunChild(const std::vector<std::string>& command, const std::map<std::string, std::string>& environment,
                 double limit, const std::string& scratch, const OnTick& on_tick = {});

// From now on SIGINT, SIGTERM and SIGHUP kill the running child, and no other is started.
void KillChildOnSignals();

// Returns the signal received since, 0 if there was none.
int Interrupted();

}  // namespace hotpack::check
