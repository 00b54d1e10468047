// The least time of any plan without copies to the host, by enumerating all plans: for graphs of a few operators.
#pragma once

#include <optional>

#include "remat/core/values.h"

namespace hotpack::remat {

struct BruteForceOptions {
  bool keeps_order = false;  // first runs in the program's order
  size_t most_states = 300'000;
};

struct BruteForceAnswer {
  bool complete = false;            // it visited all states
  std::optional<Nanoseconds> time;  // nothing: no plan fits
};

// States are what each storage holds, with how much memory, and which operators have run; Dijkstra's algorithm over
// runs (in place or not) and drops, by the rules of the simulator and the verifier, with neither's code.
BruteForceAnswer BruteForce(const Graph& graph, Bytes budget, const BruteForceOptions& options = {});

// The least time of the plans of Checkmate's form: before each first run, in the program's order, any of the operators
// before it once, in order; and after the last one. 2^(n (n + 1) / 2) of them.
std::optional<Nanoseconds> BruteForceOfStages(const Graph& graph, const Values& values, Bytes budget);

}  // namespace hotpack::remat
