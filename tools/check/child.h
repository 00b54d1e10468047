// A child process with a time limit.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace hotpack::check {

struct Outcome {
  int code = 0;            // exit status, 128 + signal if killed, 127 if it could not be started
  bool timed_out = false;  // killed by RunChild
  double seconds = 0;
  std::string out;
  std::string err;
};

// Runs `command` (an absolute path or a name in PATH first) and waits for its end, at most `limit` seconds. Then it
// kills the child and all processes that it started, except those that left its process group. `environment`: variables
// to set, or to remove if empty, in addition to this process's. `scratch`: a directory for its output. Keeps the first
// and the last two mebibytes of each stream. One child at a time.
Outcome RunChild(const std::vector<std::string>& command, const std::map<std::string, std::string>& environment,
                 double limit, const std::string& scratch);

// From now on SIGINT, SIGTERM and SIGHUP kill the running child, and no other is started.
void KillChildOnSignals();

// Returns the signal received since, 0 if there was none.
int Interrupted();

}  // namespace hotpack::check
