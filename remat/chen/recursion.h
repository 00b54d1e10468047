// Chen et al. 2016, section 4.4: the insides of segments are planned like the whole, recursively. g(n) = k +
// g(n/(k+1)): k·log(n) to the base k+1 results are kept at once. Each level but the first costs less than one forward
// pass.
//
//   k = 1, 3 levels    o─o─o─o─o─o─o─o      m = 2 1 2 0 2 1 2 0     8 layers: the 4th is kept
//                            ●                                      of a half the 2nd, once its gradient begins; ...
#pragma once

#include <vector>

#include "remat/chen/cuts.h"

namespace hotpack::remat {

// Returns the counts m for MirrorGraph(). k ≥ 1, levels ≥ 1. O((operators + makers) · levels).
//  1. The forward pass is divided at `k` of the cuts into parts with results of nearly equal sizes. Results that cross
//     these cuts are kept (m = 0).
//  2. Each part is divided in the same way with m one higher, down to `levels` levels or until it has no cut.
//  3. Operators inside the last parts have the highest m. The end of the forward pass has 0, since its gradient comes
//     next.
//  4. A result that crosses several cuts has the least m of them.
std::vector<int32_t> RecursiveCounts(const Graph& graph, const std::vector<Cut>& cuts, int k, int levels);

// The same at CandidatesOf() the graph.
std::vector<int32_t> RecursivePlan(const Graph& graph, const Values& values, int k, int levels);

}  // namespace hotpack::remat
