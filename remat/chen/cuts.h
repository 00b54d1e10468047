// Places to cut the forward pass where several results cross. An unrolled recurrent network has no single result that
// everything goes through, but between two cells only the states cross.
//
//   h1 ─┬─ [cell] ─┬─ [cell] ─┬─►
//   c1 ─┘          ╎          ╎
//                 cut        cut
//
// A cut keeps all results that are made before it and used behind it in the forward pass. Their m is 0, as Algorithm 3
// sets it for a single result.
#pragma once

#include <vector>

#include "remat/chen/segments.h"

namespace hotpack::remat {

struct Cut {
  OperatorId after;                // the last operator before it
  std::vector<OperatorId> makers;  // ascending: makers of the results that cross it
};

// Returns the places where at most as many bytes cross as behind any of the `window` operators before and behind,
// ascending. Only results count, not given contents, nor contents that only gradients read. O(operands + operators ·
// window + results that cross the cuts).
std::vector<Cut> NarrowCuts(const Graph& graph, const Values& values, int window = 16);

// CandidatesOf() returns the splitting points, or all operators if there are fewer than two. CutsAt() returns cuts that
// one operator's result crosses.
std::vector<bool> CandidatesOf(const Graph& graph, const Values& values);
std::vector<Cut> CutsAt(const std::vector<bool>& candidates);

// Returns Algorithm 3's result with cuts for C. `x` is the size of all results that cross the cuts, each counted once.
// `again` is false for their makers. O(operators + makers).
Segments PlanSegments(const Graph& graph, const std::vector<Cut>& cuts, Bytes budget);

}  // namespace hotpack::remat
