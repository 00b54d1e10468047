// What a plan makes of a graph: a list of actions, in the order in which the host issues them.
#pragma once

#include <cstdint>
#include <vector>

#include "remat/core/graph.h"

namespace hotpack::remat {

enum class ActionKind : uint8_t {
  kRun,   // an operator runs, for the first time or again. Storages that it writes are allocated if they have no memory
  kDrop,  // a storage's device memory is given back; its contents there are lost
  kOffload,   // its contents are copied to the host; the device's stay. What it held on the host before is lost
  kPrefetch,  // device memory is allocated and the contents are copied back. The host's copy stays
  kForget,    // the host's copy is given up
};

struct Action {
  ActionKind kind;
  int32_t target;                      // an operator (kRun) or a storage
  std::vector<int32_t> in_place = {};  // kRun: which of the operator's `in_place` pairs it makes use of, by index
};

struct Schedule {
  std::vector<Action> actions;
  // Operators that draw random numbers and whose generator's state is saved when they first run, so that they may run
  // again.
  std::vector<OperatorId> saved_states;
};

enum class Release : uint8_t { kAfterLastUse, kAsTheProgram };

// Each operator once, in order; a storage is dropped after its last use, or where the program lets go of it. Storages
// that nothing uses are never dropped with kAfterLastUse if they are given. In place nowhere. O(size of the graph).
Schedule Baseline(const Graph& graph, Release release = Release::kAfterLastUse);

}  // namespace hotpack::remat
