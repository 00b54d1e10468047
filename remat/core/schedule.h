// The result of planning a graph: a list of actions in the order in which the host issues them.
#pragma once

#include <cstdint>
#include <vector>

#include "remat/core/graph.h"

namespace hotpack::remat {

enum class ActionKind : uint8_t {
  // An operator runs, for the first time or again. Storages that it writes are allocated if they have no memory.
  kRun,
  // A storage's device memory is freed; its contents there are lost.
  kDrop,
  // A storage's contents are copied to the host and stay on the device. Its earlier copy on the host is lost.
  kOffload,
  // Device memory is allocated, and the contents are copied back. The host's copy stays.
  kPrefetch,
  // The host's copy is discarded.
  kForget,
};

struct Action {
  ActionKind kind;
  int32_t target;                      // an operator (kRun) or a storage
  std::vector<int32_t> in_place = {};  // kRun: indices of the operator's `in_place` pairs in use
};

struct Schedule {
  std::vector<Action> actions;
  // Random operators that run again. The generator's state is saved at their first run.
  std::vector<OperatorId> saved_states;
};

// Frees the host's copies that nothing reads again, and makes none that nothing reads: removes each offload without a
// later prefetch of it, and discards each copy after its last prefetch. Earlier forgets are replaced. Copies of what
// the program holds are made in any case. The plan is as valid as before and no slower. O(actions).
void ReleaseHostCopies(const Graph& graph, Schedule* schedule);

enum class Release : uint8_t { kAfterLastUse, kAsTheProgram };

// Returns the program as it is: each operator once, in order, nothing in place. A storage is dropped after its last
// use, or where the program frees it. With kAfterLastUse, given storages that no operator uses are never dropped.
// O(size of the graph).
Schedule Baseline(const Graph& graph, Release release = Release::kAfterLastUse);

}  // namespace hotpack::remat
