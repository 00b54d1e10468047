// A schedule that keeps to a budget: the program in order, and where an operator does not fit, the contents go that are
// cheapest to have again. Unlike a runtime it knows the rest of the step: when each value is wanted next, and what it
// costs then.
//
//   choice ──► BudgetFitter ──► time, peak, choice with what had to go        (and once more for the schedule itself)
//
// What is asked for is done; contents that go by kSwap begin their copy back as Fetching says. What does not fit is
// mended: contents go that can be made again. So every choice is a plan, and a search over them never leaves what is
// feasible.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "remat/core/schedule_builder.h"

namespace hotpack::remat {

// What is asked for, and what was done.
struct Decisions {
  std::vector<GapAction> ways;  // by gap
  std::vector<OperatorId>
      tails;  // by value: held after its last use until this operator has run, to make others again from it; -1: not
};
Decisions NothingGoes(const Values& values);

// When copies back begin. In time: so that they end before they are used, by the program's own times; what is in the
// way goes. With room: by the plan's times, and no sooner than they fit beside all that is live until they are used.
enum class Fetching : uint8_t { kInTime, kWithRoom };

// How contents are compared: those with the least  cost^1 / (bytes · (time to the next use)^wait)  go first.
struct FitOptions {
  Bytes budget = INT64_MAX;  // of what is live at once
  double wait = 1;           // ≥ 0
  bool neighbors = true;     // the cost counts what has gone that would have to be made for it, and with it
  double noise = 0;          // ≥ 0: each comparison times exp(noise · a number drawn from [-1, 1])
  uint64_t seed = 1;         // of the noise
  Fetching fetching = Fetching::kWithRoom;
  bool may_evict = true;             // else nothing goes that is not asked for, and `over` says what does not fit
  Nanoseconds max_time = INT64_MAX;  // what takes longer
  Bytes max_over = INT64_MAX;        // or is more above the budget is given up
};

struct BudgetFit {
  bool fits = false;      // else the rest says what was done, if `over` is less than INT64_MAX: nothing was given up
  Bytes over = 0;         // above the budget, summed up over all runs that did not fit
  Nanoseconds time = 0;   // as Simulate() has it
  Bytes peak = 0;         // bytes, the most that is live at once
  int64_t evictions = 0;  // times that something had to go that was not asked for
};

// Not thread-safe.
class BudgetFitter {
 public:
  // `graph` must pass Check(); both must outlive it.
  BudgetFitter(const Graph& graph, const Values& values, const Machine& machine = {});
  ~BudgetFitter();

  // `choice` is what is asked for; afterwards what was done: asked for again, nothing has to go that is not in it.
  // `hold`, if given: gaps that go only where nothing else can. `schedule`, if given: it passes Verify(). O(actions +
  // contents that go · those that are live, at worst).
  BudgetFit Fit(const FitOptions& options, Decisions* choice, const std::vector<bool>* hold = nullptr,
                Schedule* schedule = nullptr);

  // Whether the gap's contents could ever be made again, and whether they could be copied out and back.
  bool CanGo(GapId gap) const;
  bool CanSwap(GapId gap) const;
  // Of the last call: what was used up and had to be made again for others, and for which operator. To hold it would be
  // a tail.
  const std::vector<std::pair<ValueId, OperatorId>>& Missed() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace hotpack::remat
