// Chen et al. 2016, Algorithm 2: the gradient's graph with the forward pass mirrored in it. m(v) says how many times an
// operator's results may be computed again; the gradient reads the last copies.
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

// What a generator of random numbers needs to draw the same ones again: a seed and an offset of 8 bytes each.
inline constexpr Bytes kRandomStateBytes = 16;

struct MirroredGraph {
  Graph graph;
  std::vector<OperatorId> operator_of;  // by operator: the one of the program that it is, or is a copy of
  std::vector<bool> is_copy;            // by operator
  std::vector<StorageId> storage_of;    // by storage: the program's one; -1: a generator's state
  std::vector<StorageId> state_of;      // by operator: where it leaves its generator's state, or, a copy, finds it; -1
  std::vector<int32_t> counts;          // by operator of the program: the m(v) that were possible
};

// Algorithm 2. `counts`: m(v), one entry an operator of the program, ≥ 0. The graph passes Check(), and its Baseline()
// is the plan: a copy runs before the first operator of the gradient that it is an ancestor of; copies that are no
// ancestors of any are left out, and so is any result that only they would need. A random operator writes its
// generator's state, which its copies read. m(v) is taken as 0 for operators behind the forward pass, for those that
// may run once or that change a storage in place, and where an operator reads contents that are overwritten before its
// copies would run. `graph` must pass Check(). O(size of the graph · largest m). Thread-safe.
MirroredGraph MirrorGraph(const Graph& graph, const Values& values, const std::vector<int32_t>& counts);

// The same plan as a schedule of the program's own graph. FailedPrecondition, with one line, if a storage would have to
// hold two contents at once. The schedule passes Verify(). O(size of the mirrored graph). Thread-safe.
absl::StatusOr<Schedule> ScheduleOf(const Graph& graph, const Values& values, const MirroredGraph& mirrored);

// Both.
absl::StatusOr<Schedule> ScheduleByMirror(const Graph& graph, const Values& values, const std::vector<int32_t>& counts);

}  // namespace hotpack::remat
