// What has to run again behind the first run of one operator: the covering problem of remat/exact/bounds.h and its
// relaxation.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "remat/core/cut.h"
#include "remat/core/values.h"

namespace hotpack::remat {

// Which operators have surely run when one first runs, and which surely not: by what they use, or as in the program if
// plans keep to that.
class RunOrder {
 public:
  // Both must outlive it.
  RunOrder(const Graph& graph, const Values& values, bool keeps_order)
      : graph_(graph), values_(values), keeps_order_(keeps_order) {}

  // By operator: it has run when `op` first runs, or is it. The number of operators stands for the end. O(size of the
  // graph).
  std::vector<bool> Before(OperatorId op) const;
  // By operator: it first runs after `op` does. O(size of the graph).
  std::vector<bool> Behind(OperatorId op) const;

 private:
  OperatorId MakerOf(ValueId value) const { return values_.values[static_cast<size_t>(value)].maker; }

  const Graph& graph_;
  const Values& values_;
  const bool keeps_order_;
};

// The cut at operator `at`, for what is wanted by operators that first run behind it and no later than `until` (the
// number of operators: by all, and at the end). Not thread-safe.
class PointCut {
 public:
  // The arguments must outlive it, but for the order.
  PointCut(const Graph& graph, const Values& values, const RunOrder& order, OperatorId at, OperatorId until);

  void Hold(const std::vector<ValueId>& values);  // in all that follows; made before `at`
  Bytes AllHeld() const { return all_; }          // bytes with everything held that is wanted
  Bytes LeastBytes();                             // with all made again that can be

  // The relaxation's optimum, rounded up (times are integers); nothing if the budget is below LeastBytes(). A few least
  // cuts.
  std::optional<Nanoseconds> Time(Bytes budget);
  // A choice of operators that run again; a corner of the lower hull of (bytes, time) if it is the least for some
  // price.
  struct Corner {
    Bytes bytes = 0;                // there when `at` runs
    Nanoseconds time = 0;           // of what runs again behind it
    std::vector<OperatorId> again;  // ascending
    std::vector<ValueId> held;      // wanted behind it, or used by what runs again; but for what is there in any case
  };
  Corner Fastest();   // of those of the least time the one of the fewest bytes
  Corner Smallest();  // of those of the fewest bytes the one of the least time
  // The hull's corner that is farthest below the line between the two; nothing: they are neighbors.
  std::optional<Corner> Between(const Corner& above, const Corner& below);

  // The same as Time() without relaxation, as far as `branches` nodes of a branch and bound go (Land and Doig 1960,
  // best first). At least Time(). `visit`, if given, sees the choices within the budget that it comes by, and may end
  // it with false.
  std::optional<Nanoseconds> TimeWhole(Bytes budget, int branches,
                                       const std::function<bool(const Corner&)>& visit = {});

  // A choice within the budget near `from`, which need not be within it. What can be exchanged there: an operator does
  // not run again, and no more than that takes; a result is not held. As many as are worth most together, if each were
  // worth what it is alone (a knapsack, by dynamic programming); and again from there, a few times. Nothing: none was
  // come by. O(operators again and results held · size of the graph).
  std::optional<Corner> Exchanged(const Corner& from, Bytes budget) const;

 private:
  enum class Fixed : int8_t { kFree, kRecompute, kNotAgain };
  struct Relaxation {
    Nanoseconds time = 0;       // of the optimum, rounded up
    Corner within;              // the corner within the budget
    OperatorId undecided = -1;  // runs again in one of the two corners only; -1: they are one
    std::vector<std::pair<OperatorId, Fixed>> fixed;
    bool operator<(const Relaxation& other) const { return time > other.time; }  // the least first
  };

  const Value& Of(ValueId value) const { return values_.values[static_cast<size_t>(value)]; }
  Bytes BytesOf(ValueId value) const { return graph_.storages[static_cast<size_t>(Of(value).storage)].bytes; }
  // Never made again.
  bool IsOnce(ValueId value) const {
    return Of(value).maker < 0 || graph_.operators[static_cast<size_t>(Of(value).maker)].once;
  }

  void AddThere(OperatorId at);
  Corner Solve(Wide per_time, Wide per_byte);
  std::optional<Relaxation> Relax(Bytes budget);
  OperatorId Difference(const Corner& above, const Corner& below) const;
  Corner CornerOf(const std::vector<bool>& again) const;  // where those run again, if anything needs them
  std::vector<OperatorId> RunsFor(OperatorId op, std::vector<bool> again, const std::vector<bool>& held) const;
  std::optional<Corner> ExchangedOnce(const Corner& now, Bytes budget) const;

  const Graph& graph_;
  const Values& values_;
  std::vector<bool> there_;      // by value: at `at` in any case
  std::vector<ValueId> wanted_;  // but those that are there
  std::vector<Fixed> fixed_;     // by operator
  std::vector<int32_t> node_;    // by value, of Solve()
  Bytes base_ = 0;               // of what is there
  Bytes all_ = 0;
  Nanoseconds total_ = 0;  // more than any choice takes
};

}  // namespace hotpack::remat
