// A child process with a time limit.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace hotpack::check {

struct Outcome {
  int code = 0;            // exit status, 128 + signal if killed, 127 if it could not be started
  bool timed_out = false;  // killed by us
  double seconds = 0;
  std::string out;
  std::string err;
};

// Runs `command` (an absolute path or a name in PATH first) and waits for its end, at most `limit` seconds; then it and
// everything it started is killed, unless that left its process group. `environment`: set (or, with an empty value,
// removed) on top of this process's. `scratch`: a directory for its output. Of each stream the first and the last two
// mebibytes are kept. One child at a time.
Outcome RunChild(const std::vector<std::string>& command, const std::map<std::string, std::string>& environment,
                 double limit, const std::string& scratch);

// From now on SIGINT, SIGTERM and SIGHUP kill the child that is running, and no other is started.
void KillChildOnSignals();

// The signal that came since, 0: none.
int Interrupted();

}  // namespace hotpack::check
