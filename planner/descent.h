// hotpack's own planner: for each memory the fastest plan that a search over all gaps finds, every step judged by the simulator.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/rebuild.h"

namespace hotpack::planner {

struct DescentOptions {
  Machine machine = {};
  bool swap = false;           // copies to the host too
  int levels = 40;             // memories looked for, from the program's own down to the least
  int improvements = 20;       // at each level: times that some of what went is held, and something else let go instead
  uint64_t seed = 1;
  int64_t evaluations = INT64_MAX;  // schedules made and simulated, at most
  int64_t time_limit_ns = INT64_MAX;  // where it strikes, what is found depends on the machine
  Bytes stop_at = 0;           // memories below this one are not looked for
  bool improve_all = true;     // else at the last level only
};

struct Plan {
  std::vector<Way> ways;  // by gap
  Nanoseconds time = 0;
  Bytes live_peak = 0;    // bytes; no arena for the plan is smaller
};

struct Frontier {
  std::vector<Plan> plans;  // from the most memory to the least: each takes less memory and more time than the one before
  Bytes least = 0;          // LeastMemory()
  int64_t evaluations = 0;
};

// No plan takes less, in bytes: the operands and the workspace of some operator are there at once, and beside them, unless contents
// may be swapped, what is given and kept; all that is given at the beginning, and all that is kept at the end. O(size of the graph).
Bytes LeastMemory(const Graph& graph, bool swap);

// The same for the same options, on any machine. Thread-safe.
Frontier Descend(const Graph& graph, const Values& values, const DescentOptions& options = {});

}  // namespace hotpack::planner
