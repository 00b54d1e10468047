// The least time of any plan without copies to the host, by enumerating all plans: for graphs of a few operators.
#pragma once

#include <cstdint>
#include <optional>

#include "remat/core/values.h"

namespace hotpack::remat {

struct BruteForceOptions {
  bool keeps_order = false;  // first runs in the program's order
  size_t most_states = 300'000;
};

struct BruteForceAnswer {
  bool complete = false;            // it visited all states
  std::optional<Nanoseconds> time;  // nullopt: no plan fits
};

// Dijkstra's algorithm over runs (in place or not) and drops, by the rules of the simulator and the verifier, without
// their code. A state has the contents and memory of each storage, and the operators that have run.
BruteForceAnswer BruteForce(const Graph& graph, Bytes budget, const BruteForceOptions& options = {});

struct BruteForceCopiesOptions {
  double bytes_per_ns = 1;
  Nanoseconds faster_than = INT64_MAX;  // slower plans are none
  size_t most_states = 200'000;
};

// Like BruteForce() in the program's order, with copies to the host and back on two engines, and with what the program
// holds. Of graphs of up to 16 storages, without `in_place`. The states of one memory are compared by all their
// engines' times. What a state still takes are at least the operators that have not run (A*).
BruteForceAnswer BruteForceWithCopies(const Graph& graph, Bytes budget, const BruteForceCopiesOptions& options);

// Returns the least time of the plans of Checkmate's form: before each first run, in the program's order, any of the
// earlier operators once, in order; and after the last one. There are 2^(n (n + 1) / 2) of them.
std::optional<Nanoseconds> BruteForceOfStages(const Graph& graph, const Values& values, Bytes budget);

}  // namespace hotpack::remat
