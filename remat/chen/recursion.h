// Chen et al. 2016, section 4.4: the segments' insides planned like the whole, and so on. g(n) = k + g(n/(k+1)):
// k·log(n) to the base k+1 results are kept at once, and each level but the first costs less than one forward pass.
//
//   k = 1, 3 levels    o─o─o─o─o─o─o─o      m = 2 1 2 0 2 1 2 0     8 layers: the 4th is kept; of a half
//                            ●                                      the 2nd, once its gradient begins; ...
#pragma once

#include <vector>

#include "remat/chen/cuts.h"

namespace hotpack::remat {

// Mirror counts for MirrorGraph(). The forward pass is cut at `k` of the cuts into parts whose results have as equal
// sizes as the cuts allow: what goes over them is kept (m = 0); the parts are cut in the same way with m one higher,
// down to `levels` levels or where there is no cut. What is inside the last parts has the highest m; the end of the
// forward pass is 0, since its gradient comes next. What goes over several cuts has the least m of them. k ≥ 1, levels
// ≥ 1. O((operators + makers) · levels).
std::vector<int32_t> RecursiveCounts(const Graph& graph, const std::vector<Cut>& cuts, int k, int levels);

// At CandidatesOf() the graph.
std::vector<int32_t> RecursivePlan(const Graph& graph, const Values& values, int k, int levels);

}  // namespace hotpack::remat
