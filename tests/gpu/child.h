// Starts this program again with `--child NAME` and reads the `key=value` lines it prints.
#pragma once

#include <map>
#include <string>

namespace hotpack::gpu {

struct ChildOutcome {
  std::string end;  // "exit 0", "signal 11", "no end within 30 s"
  std::map<std::string, std::string> values;

  bool Good() const { return end == "exit 0"; }
  // The value, or "nothing".
  std::string Value(const std::string& key) const;
};

// Runs the child. Its environment is this process's, with the simulated device's checker off, because it errs on
// purpose. It is killed after `seconds`.
ChildOutcome RunChild(const std::string& name, int seconds = 30);

// Waits for the process `pid` (a child of this one) for at most `seconds`, then kills it. Returns its end as in
// ChildOutcome.
std::string WaitForEnd(int pid, int seconds);

}  // namespace hotpack::gpu
