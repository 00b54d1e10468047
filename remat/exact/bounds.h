// Lower bounds on the time of all plans at a budget: the operators that must run again in any plan.
//
//   runs      f1 f2 f3 ... fk │ ... b3 b2 b1
//                             │ at the first run of k: x1 x2 x3 ... xk are wanted behind it. The budget holds some.
//                             │ Each other one is recomputed behind it: its operator has run and runs once more
//
// The cut at k. When k first runs, all operators that it depends on have run, since they made its operands. No operator
// that depends on k has run. Let P be the operators that k depends on, and k. Consider a value that an operator of P
// made, or that is given. If an operator behind k uses it, or if it is kept at the end, it is resident at k or made
// behind k. Made behind k means that its operator, of P, runs at least once more. Each operand of that run is in turn
// resident at k or made behind k. Let y_o say that o of P runs behind k, and h_v that v is resident at k. Then
//
//   min Σ cost_o y_o   where    h_v + y_maker(v) ≥ 1         for every v wanted behind k
//                               h_v + y_maker(v) ≥ y_o       for every v that o uses
//                               Σ bytes_v h_v ≤ budget - workspace of k,     h_v = 1 for operands and results of k
//
// is at most the time of any plan beyond one run of each operator. y_o = 0 if v is given, or made by an operator with
// `once`.
//
// The bound is the linear relaxation. With a price for memory it is a minimum cut. The cut's value less price · budget
// is a bound for every price (weak duality). The best price gives the relaxation's optimum, found over the corners of
// the lower hull of (bytes, time). At the cuts that count, branch and bound over y raises the bound towards the optimum
// in integers. The nodes left open take at least the least of their bounds.
//
// Cuts in a row. Reruns between the first runs of k and of a later l are other runs than those behind the first run of
// l. So bounds of disjoint stretches add up, if a value is wanted only for uses by operators that first run after k and
// no later than l.
//
// Simplifications that only lower the bound: operands changed in place are not resident afterwards, operands read in
// place need not be, and several contents of one storage may count as resident.
//
// With copies to the host: y bytes may be absent at k without being recomputed. They are copied out before k, and back
// behind it and before they are used. Let y and the reruns R(y) be those of values wanted up to the first run of l.
// Then
//
//   time up to the end of k            at least  max(operators before k, y / bandwidth to the host) + k
//   time from there to the end of l    at least  max(operators behind k up to l + R(y), y / bandwidth to the device)
//
// The second bounds of disjoint stretches add up, behind the first bound of the first stretch. Of each stretch the
// least over y counts. Given contents that are used only behind l, such as an optimizer's state, are resident at k or
// away, too: they count in y to the host. So may all that is wanted up to the end, in the first bound alone. State that
// is on the host between steps, and that an operator changes, is copied back behind it: behind the first such operator
// the step takes at least these bytes / bandwidth to the host.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "remat/core/simulator.h"
#include "remat/core/values.h"

namespace hotpack::remat {

struct BoundOptions {
  // Covers only plans whose first runs are in the program's order, as all planners' here are. The bound is higher. It
  // then knows what the program holds (Storage::held): that stays on the device, or moves to the host if it may.
  bool keeps_order = false;
  // Also covers plans with copies to the host.
  bool swap = false;
  Machine machine = {};  // only its bandwidths matter
  // Operators at which cuts are tried, ≥ 1. More are better at low budgets.
  int points = 16;
  // The most nodes of a branch and bound at each cut of the best sum (fewer for more than 200 operators). 0: relaxed.
  int branches = 200;
  // If it is reached, no more cuts are tried. The bound is still valid, but lower.
  int64_t time_limit_ns = INT64_MAX;
};

struct TimeBound {
  // No plan whose live peak is within the budget takes less.
  Nanoseconds time = 0;
  // The operators whose cuts gave it; empty: each operator once.
  std::vector<OperatorId> points;
};

// Returns a lower bound in bytes on the memory of all plans: LeastMemory() of remat/core/load.h, and without copies to
// the host the bytes that must be resident at a cut so that all values wanted behind it can be made. O(points · minimum
// cuts). Thread-safe.
Bytes LeastBytes(const Graph& graph, const Values& values, const BoundOptions& options = {});

// Returns a lower bound on the time at a budget. Returns ResourceExhausted with one line if no plan fits the budget,
// with a number of bytes below which no plan exists. Above that number a plan may or may not exist. O(points² · minimum
// cuts). Thread-safe.
absl::StatusOr<TimeBound> LeastTime(const Graph& graph, const Values& values, Bytes budget,
                                    const BoundOptions& options = {});

}  // namespace hotpack::remat
