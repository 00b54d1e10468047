// Builds a schedule that keeps to a budget. It runs the program in order. Where an operator exceeds the budget, it
// evicts the values that are cheapest to restore. Unlike a runtime it knows the rest of the step: when each value is
// used next, and what restoring it costs then.
//
//   choice ──► BudgetFitter ──► time, peak, choice with its evictions        (and once more for the schedule itself)
//
// The fitter follows the choice. Values under kOffload begin their copy back as Fetching says. What exceeds the budget
// is repaired by evictions of values that can be restored. So every choice is a plan, and a search over choices never
// leaves the feasible set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "remat/core/schedule_builder.h"

namespace hotpack::remat {

// One plan as a choice: what the caller asks for, and afterwards what was done.
struct Decisions {
  std::vector<GapAction> ways;  // by gap
  // By value: the value is held after its last use until this operator has run, so that others can be recomputed from
  // it. -1: it is not.
  std::vector<OperatorId> tails;
};
Decisions NothingGoes(const Values& values);

// When copies back begin.
//   kInTime     early enough to end before the use, by the program's own times. Values in the way are evicted
//   kWithRoom   by the plan's times, and not before the copy fits next to all that is live until the use
//   kWhenIdle   as soon as the engine is idle and the copy fits until the use. What is used first goes first
enum class Fetching : uint8_t { kInTime, kWithRoom, kWhenIdle };
inline constexpr size_t kFetchings = 3;

// How values are compared. Those with the least  cost^1 / (bytes · (time to the next use)^wait)  are evicted first.
struct FitOptions {
  Bytes budget = INT64_MAX;  // of the bytes live at once
  double wait = 1;           // ≥ 0
  // The cost includes evicted values that would be recomputed for this one, or together with it.
  bool neighbors = true;
  double noise = 0;   // ≥ 0: each comparison times exp(noise · a number drawn from [-1, 1])
  uint64_t seed = 1;  // of the noise
  Fetching fetching = Fetching::kWithRoom;
  // Evicted values may also go to the host. A copy out and back then counts as this part of its time, beyond the time
  // that an operator waits for it; ≥ 0. Negative: they are only recomputed.
  double copy_price = -1;
  bool may_evict = true;  // false: evicts nothing; `over` says by how much the plan is too large
  // Plans that take longer are given up.
  Nanoseconds max_time = INT64_MAX;
  // Plans that exceed the budget by more are given up.
  Bytes max_over = INT64_MAX;
};

struct BudgetFit {
  // If false, the other members describe the plan, unless it was given up. Then `over` is INT64_MAX.
  bool fits = false;
  // Bytes above the budget, summed over all runs that did not fit.
  Bytes over = 0;
  Nanoseconds time = 0;   // as Simulate() reports it
  Bytes peak = 0;         // bytes, the most live at once
  int64_t evictions = 0;  // evictions in addition to the choice
  int64_t copies = 0;     // copies to the host
};

// Turns choices into plans within a budget. Not thread-safe.
class BudgetFitter {
 public:
  // `graph` must pass Check(); both must outlive it.
  BudgetFitter(const Graph& graph, const Values& values, const Machine& machine = {});
  ~BudgetFitter();

  // Fits `*choice` and replaces it by what was done. A second call with that result evicts nothing more. `hold`, if not
  // null: gaps that are evicted only as a last resort. `schedule`, if not null, receives a schedule that passes
  // Verify(). O(actions + evictions · live values) in the worst case.
  BudgetFit Fit(const FitOptions& options, Decisions* choice, const std::vector<bool>* hold = nullptr,
                Schedule* schedule = nullptr);

  // Whether the gap's value could ever be recomputed, and whether it could be copied out and back.
  bool CanGo(GapId gap) const;
  bool CanSwap(GapId gap) const;
  // Returns the values of the last call that were used up and had to be recomputed for others, each with the operator
  // that needed it. Holding one would be a tail.
  const std::vector<std::pair<ValueId, OperatorId>>& Missed() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace hotpack::remat
