// Chen, Xu, Zhang, Guestrin 2016, "Training deep nets with sublinear memory cost": which results of the forward pass
// are kept.
//
//   forward   ─ o ─ o ─ ● ─ o ─ o ─ ● ─ o ─ o ─ ●      ● kept, between segments; o dropped after its last use in the forward pass
//   backward                    a segment's results are computed again, from the one kept before it, when its gradients are
#pragma once

#include <vector>

#include "remat/core/schedule_builder.h"
#include "remat/core/simulator.h"

namespace hotpack::remat {

// Algorithm 3's answer.
struct Segments {
  Bytes x = 0;              // kept between the segments
  Bytes y = 0;              // of the largest segment
  std::vector<bool> again;  // by operator: m(v) = 1, its results are computed again
};

// Algorithm 3 over the operators of the forward pass, in order: a segment ends at an operator of `candidates` (C; by
// operator) once its results are more than `budget` (B, bytes). O(operators).
Segments PlanSegments(const Graph& graph, const std::vector<bool>& candidates, Bytes budget);

// Appendix A's values of B behind the first, 0, whose answer is `without_budget`: √(xy), then `points` on [√(xy)/√2,
// √2·√(xy)] (6 in the paper), evenly in the logarithm.
std::vector<Bytes> BudgetsOfSearch(const Segments& without_budget, int points);

// Where one result alone goes from what is before to what is behind: nothing else that the forward pass made before is
// used after it in the forward pass. The places at which a segment may end without keeping more than that result.
std::vector<bool> SplittingPoints(const Graph& graph, const Values& values);

// Section 4.2: results of the operators of the forward pass that are not heavy are computed again: normalisation,
// activation, pooling. Those that join several results are kept: a residual network's additions would be computed again
// back to its beginning.
std::vector<bool> CheapOperators(const Graph& graph);

// In the gaps from the forward pass to the backward pass, the results of these operators are computed again, once (m =
// 1).
std::vector<GapAction> DropForward(const Graph& graph, const Values& values, const std::vector<bool>& again);

struct ChenPlan {
  Bytes budget = 0;  // B
  Segments segments;
  std::vector<GapAction> ways;
  Outcome outcome;
};

// Results that are not computed again are kept as long as others are computed from them.
Schedule ScheduleOf(const Graph& graph, const Values& values, const ChenPlan& plan, const Machine& machine = {});

// Appendix A: B = 0, then the BudgetsOfSearch(). In the order of the search. Candidates are the splitting points, or
// all operators where there are fewer than two.
std::vector<ChenPlan> SearchSegments(const Graph& graph, const Values& values, const Machine& machine = {},
                                     int points = 6);

}  // namespace hotpack::remat
