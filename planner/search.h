// hotpack's own planner: for each memory the fastest plan that a search over all gaps finds, every step judged by the simulator.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/rebuild.h"

namespace hotpack::planner {

struct SearchOptions {
  Machine machine = {};
  bool swap = false;           // copies to the host too
  int levels = 40;             // memories looked for, from the program's own down to the least
  int improvements = 20;       // at each level: times that some of what went is held, and something else let go instead
  uint64_t seed = 1;
  int64_t evaluations = 200'000;  // schedules made and simulated, at most
  Bytes stop_at = 0;           // memories below this one are not looked for
};

struct Plan {
  std::vector<Way> ways;  // by gap
  Nanoseconds time = 0;
  Bytes live_peak = 0;    // bytes; no arena for the plan is smaller
};

struct Frontier {
  std::vector<Plan> plans;  // from the most memory to the least: each takes less memory and more time than the one before
  Bytes least = 0;          // no plan takes less: what some operator and the contents that cannot go need at once
  int64_t evaluations = 0;
};

// The same for the same options, on any machine. Thread-safe.
Frontier Search(const Graph& graph, const Values& values, const SearchOptions& options = {});

}  // namespace hotpack::planner
