// Places where the forward pass may be cut though several results go on: an unrolled recurrent network has no single
// one that all goes through, but between two cells only the states.
//
//   h1 ─┬─ [cell] ─┬─ [cell] ─┬─►      a cut keeps all that is made before it and wanted behind it
//   c1 ─┘          ╎          ╎        in the forward pass: m = 0, as Algorithm 3 sets it for one
//                 cut        cut
#pragma once

#include <vector>

#include "remat/chen/segments.h"

namespace hotpack::remat {

struct Cut {
  OperatorId after;                // the last operator before it
  std::vector<OperatorId> makers;  // ascending: of what goes over it
};

// Where no more goes over, in bytes, than behind any of the `window` operators before and behind. Results only: not
// what is given, nor what the gradient alone will read. Ascending. O(operands + operators · window + what goes over the
// cuts).
std::vector<Cut> NarrowCuts(const Graph& graph, const Values& values, int window = 16);

// The splitting points, or all operators where there are fewer than two; and cuts over which the result of one operator
// goes.
std::vector<bool> CandidatesOf(const Graph& graph, const Values& values);
std::vector<Cut> CutsAt(const std::vector<bool>& candidates);

// Algorithm 3 with cuts for C: `x` is what their makers' results have together, each counted once; `again` is false for
// all of them. O(operators + makers).
Segments PlanSegments(const Graph& graph, const std::vector<Cut>& cuts, Bytes budget);

}  // namespace hotpack::remat
