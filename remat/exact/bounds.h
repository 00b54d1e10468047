// No plan takes less time at a budget: what must run again, whatever a planner does.
//
//   runs      f1 f2 f3 ... fk │ ... b3 b2 b1
//                             │ at the first run of k: x1 x2 x3 ... xk are wanted behind it, and the budget holds some of them.
//                             │ Each of the others is made again behind it: its operator has run before, and runs once more
//
// The cut at k. When k first runs, all operators that it depends on have run (they made what it sees); none that
// depends on it has. Let P be the former, with k. A value that an operator of P made (or that is given) and that an
// operator behind k uses, or that is left at the end, is there at k or made behind k. Made behind k means that its
// operator, of P, runs at least once more than once, and that each value that it uses is there at k or made behind k in
// turn. So if y_o says that o of P runs behind k, and h_v that v is there at k,
//
//   least Σ cost_o y_o   where   h_v + y_maker(v) ≥ 1         for every v wanted behind k
//                                h_v + y_maker(v) ≥ y_o       for every v that o uses
//                                Σ bytes_v h_v ≤ budget - workspace of k,     h_v = 1 for operands and results of k
//
// is at most what any plan takes beyond one run of each operator (y_o = 0 for what is given, or made by an operator
// that may run once only). The bound is its linear relaxation: with a price for memory it is a least cut, whose value
// less price · budget is a bound for every price (weak duality), and the best price gives the relaxation's optimum,
// found over the corners of the lower hull of (bytes, time). At the cuts that count, branch and bound over y brings it
// nearer to the optimum in whole numbers: what is left open takes no less than the least of it.
//
// Cuts in a row. Runs again between the first runs of k and of a later l are others than those behind the first run of
// l. So if only uses by operators that first run after k and no later than l count as wanted, bounds of disjoint
// stretches add up.
//
// Operands that are changed in place are not there afterwards, and what is read in place need not be; of a storage's
// several contents more than one may count as there: all this only lowers the bound.
//
// With copies to the host: y bytes may be away at k without being made again. They are copied out before k and back
// behind it, so that the step takes at least time before k + y / bandwidth to the device, and cost of k + y / each
// bandwidth; the bound is the least over y of the greater one of that and of the cut with y bytes more.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "remat/core/simulator.h"
#include "remat/core/values.h"

namespace hotpack::remat {

struct BoundOptions {
  bool keeps_order =
      false;  // of plans only in which first runs are in the program's order, as those of all planners here: a higher bound
  bool swap = false;     // of plans with copies to the host too
  Machine machine = {};  // its bandwidths count
  int points = 16;       // operators at which cuts are tried, ≥ 1; more are better at low budgets
  int branches =
      200;  // of a branch and bound at each cut of the best sum, at most (fewer for more than 200 operators); 0: relaxed
  int64_t time_limit_ns = INT64_MAX;  // where it strikes, no more cuts are tried: a bound all the same, and lower
};

struct TimeBound {
  Nanoseconds time = 0;            // of no plan, at its live peak within the budget, is less
  std::vector<OperatorId> points;  // whose cuts gave it; empty: each operator once
};

// No plan needs less, in bytes: LeastMemory() of remat/core/load.h, and without copies to the host what has to be there
// at a cut so that all that is wanted behind it can be made at all. O(points · least cuts). Thread-safe.
Bytes LeastBytes(const Graph& graph, const Values& values, const BoundOptions& options = {});

// ResourceExhausted with one line if no plan fits the budget, with a number of bytes below which there is none. Whether
// one fits above that is not said. O(points² · least cuts). Thread-safe.
absl::StatusOr<TimeBound> LeastTime(const Graph& graph, const Values& values, Bytes budget,
                                    const BoundOptions& options = {});

}  // namespace hotpack::remat
