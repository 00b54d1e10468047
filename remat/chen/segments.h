// Chen, Xu, Zhang, Guestrin 2016, "Training deep nets with sublinear memory cost": chooses which results of the forward
// pass are kept.
//
//   forward   ─ o ─ o ─ ● ─ o ─ o ─ ● ─ o ─ o ─ ●      ●  kept, between segments
//                                                      o  dropped after its last use in the forward pass
//   backward                                           recomputes a segment's results from the kept one before it, when
//                                                      its gradients are computed
#pragma once

#include <vector>

#include "remat/core/schedule_builder.h"
#include "remat/core/simulator.h"

namespace hotpack::remat {

// Algorithm 3's result.
struct Segments {
  Bytes x = 0;              // bytes kept between the segments
  Bytes y = 0;              // bytes of the largest segment
  std::vector<bool> again;  // by operator: m(v) = 1, its results are recomputed
};

// Runs Algorithm 3 over the operators of the forward pass, in order. A segment ends at an operator of `candidates` (C;
// by operator) once its results exceed `budget` bytes (B). O(operators).
Segments PlanSegments(const Graph& graph, const std::vector<bool>& candidates, Bytes budget);

// Returns Appendix A's values of B after the first, which is 0 and has the result `without_budget`. They are √(xy),
// then `points` values on [√(xy)/√2, √2·√(xy)] (6 in the paper), evenly spaced in the logarithm.
std::vector<Bytes> BudgetsOfSearch(const Segments& without_budget, int points);

// Returns by operator whether its result alone crosses from the operators before to those behind, in the forward pass.
// There a segment may end without keeping more than that result.
std::vector<bool> SplittingPoints(const Graph& graph, const Values& values);

// Section 4.2: returns by operator whether it is recomputed: those of the forward pass that are not heavy, such as
// normalisation, activation, pooling. Operators that join several results are kept, because a residual network's
// additions would be recomputed back to its beginning.
std::vector<bool> CheapOperators(const Graph& graph);

// Recomputes the results of these operators once (m = 1) in the gaps from the forward pass to the backward pass.
std::vector<GapAction> DropForward(const Graph& graph, const Values& values, const std::vector<bool>& again);

struct ChenPlan {
  Bytes budget = 0;  // B
  Segments segments;
  std::vector<GapAction> ways;
  Outcome outcome;
};

// Returns the plan's schedule. Results that are not recomputed are kept as long as others are recomputed from them.
Schedule ScheduleOf(const Graph& graph, const Values& values, const ChenPlan& plan, const Machine& machine = {});

// Returns the plans of Appendix A in the order of the search: B = 0, then the BudgetsOfSearch(). Candidates are the
// splitting points, or all operators if there are fewer than two.
std::vector<ChenPlan> SearchSegments(const Graph& graph, const Values& values, const Machine& machine = {},
                                     int points = 6);

}  // namespace hotpack::remat
