// Chen et al. 2016, Algorithm 2: the gradient's graph with the forward pass mirrored in it. m(v) is the number of times
// that an operator's results may be recomputed. The gradient reads the last copies.
//
//   m = 0 1 1 0 1 1     a ─ b ─ c ─ d ─ e ─ f ─ loss      order: a b c d e f loss e' f' ∇f ∇e ∇d b' c' ∇c ∇b ∇a
//                           b' ─ c'     e' ─ f'           b' reads a, c' reads b'; ∇c reads c' and b'
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "remat/core/graph.h"
#include "remat/core/schedule.h"
#include "remat/core/values.h"

namespace hotpack::remat {

// A random generator's state: a seed and an offset of 8 bytes each.
inline constexpr Bytes kRandomStateBytes = 16;

struct MirroredGraph {
  Graph graph;
  std::vector<OperatorId> operator_of;  // by operator: the program's operator that it is or copies
  std::vector<bool> is_copy;            // by operator
  std::vector<StorageId> storage_of;    // by storage: the program's storage; -1: a generator's state
  // By operator: the storage for its generator's state, which copies read; -1: none.
  std::vector<StorageId> state_of;
  std::vector<int32_t> counts;  // by operator of the program: m(v) as far as possible
};

// Returns the graph of Algorithm 2. It passes Check(), and its Baseline() is the plan. `graph` must pass Check().
// `counts`: m(v) ≥ 0, one entry per operator of the program. O(size of the graph · largest m). Thread-safe.
//  1. A copy runs before the first operator of the gradient that depends on it.
//  2. Copies on which no gradient depends are left out, and so are results that only they need.
//  3. A random operator writes its generator's state, which its copies read.
//  4. m(v) is taken as 0 for operators behind the forward pass, with `once`, or with changes in place. The same holds
//     for operators whose operands are overwritten before their copies would run.
MirroredGraph MirrorGraph(const Graph& graph, const Values& values, const std::vector<int32_t>& counts);

// Returns the same plan as a schedule of the program's own graph. It passes Verify(). Returns FailedPrecondition with
// one line if a storage would have to hold two contents at once. O(size of the mirrored graph). Thread-safe.
absl::StatusOr<Schedule> ScheduleOf(const Graph& graph, const Values& values, const MirroredGraph& mirrored);

// MirrorGraph() and ScheduleOf() in one call.
absl::StatusOr<Schedule> ScheduleByMirror(const Graph& graph, const Values& values, const std::vector<int32_t>& counts);

}  // namespace hotpack::remat
