// Which operators must run again after the first run of one operator: the covering problem of remat/exact/bounds.h and
// its relaxation.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "remat/core/cut.h"
#include "remat/core/values.h"

namespace hotpack::remat {

// Which operators have certainly run when a given one first runs, and which have certainly not. The order follows from
// operands alone, or is the program's order if all plans keep it.
class RunOrder {
 public:
  // Both must outlive it.
  RunOrder(const Graph& graph, const Values& values, bool keeps_order)
      : graph_(graph), values_(values), keeps_order_(keeps_order) {}

  // Returns by operator whether it has run when `op` first runs, `op` included. The number of operators stands for the
  // end. O(size of the graph).
  std::vector<bool> Before(OperatorId op) const;
  // Whether first runs are in the program's order.
  bool keeps_order() const { return keeps_order_; }
  // Returns by operator whether it first runs after `op`. O(size of the graph).
  std::vector<bool> Behind(OperatorId op) const;

 private:
  OperatorId MakerOf(ValueId value) const { return values_.values[static_cast<size_t>(value)].maker; }

  const Graph& graph_;
  const Values& values_;
  const bool keeps_order_;
};

// The cut at operator `at`. A value is wanted if an operator uses it that first runs after `at` and no later than
// `until`. If `until` is the number of operators, all later uses count, and so do the contents kept at the end. Not
// thread-safe.
class PointCut {
 public:
  // All arguments except `order` must outlive this object.
  PointCut(const Graph& graph, const Values& values, const RunOrder& order, OperatorId at, OperatorId until);

  // Holds these values in all later calls. They must be made before `at`.
  void Hold(const std::vector<ValueId>& values);
  // Bytes if all wanted values are held.
  Bytes AllHeld() const { return all_; }
  // Bytes if everything that can be recomputed is recomputed.
  Bytes LeastBytes();

  // Returns the relaxation's optimum, rounded up because times are integers. Returns nullopt if the budget is below
  // LeastBytes(). Solves a few minimum cuts.
  std::optional<Nanoseconds> Time(Bytes budget);
  // A choice of operators that run again. It is a corner of the lower hull of (bytes, time) if it is optimal for some
  // price of memory.
  struct Corner {
    Bytes bytes = 0;                // resident when `at` runs
    Nanoseconds time = 0;           // of the operators that run again after it
    std::vector<OperatorId> again;  // ascending
    // Wanted values and operands of reruns that are held, except values that are resident in any case.
    std::vector<ValueId> held;
  };
  // Returns the choice of least time. Ties: the one of fewest bytes.
  Corner Fastest();
  // Returns the choice of fewest bytes. Ties: the one of least time.
  Corner Smallest();
  // Returns the hull's corner that is farthest below the line between the two. Returns nullopt if they are neighbors.
  std::optional<Corner> Between(const Corner& above, const Corner& below);

  // Like Time() without relaxation, by branch and bound over at most `branches` nodes (Land and Doig 1960, best first).
  // The result is at least Time(). `visit`, if given, is called with each choice found within the budget. It ends the
  // search by returning false.
  std::optional<Nanoseconds> TimeWhole(Bytes budget, int branches,
                                       const std::function<bool(const Corner&)>& visit = {});

  // Returns the least over all y ≥ 0 of `cost` of y and of the relaxation's optimum with y bytes more than the budget,
  // or a lower bound on it. `cost(y, time)` must be convex, and must not fall as either grows. Solves about `rounds`
  // minimum cuts.
  using CostOfAway = std::function<double(double away, double time)>;
  double LeastCost(Bytes budget, const CostOfAway& cost, int rounds);

  // Returns a choice within the budget near `from`, which itself may exceed the budget. Returns nullopt if none is
  // found. O(operators again and results held · size of the graph).
  //
  // An exchange stops an operator's rerun, if that costs only memory, or stops holding a result. A knapsack by dynamic
  // programming picks the most valuable set, as if values were additive. A few rounds start from the previous result.
  std::optional<Corner> Exchanged(const Corner& from, Bytes budget) const;

 private:
  enum class Fixed : int8_t { kFree, kRecompute, kNotAgain };
  struct Relaxation {
    Nanoseconds time = 0;       // of the optimum, rounded up
    Corner within;              // the corner within the budget
    OperatorId undecided = -1;  // runs again in only one of the two corners; -1: they are equal
    std::vector<std::pair<OperatorId, Fixed>> fixed;
    bool operator<(const Relaxation& other) const { return time > other.time; }  // least time first
  };

  const Value& Of(ValueId value) const { return values_.values[static_cast<size_t>(value)]; }
  Bytes BytesOf(ValueId value) const { return graph_.storages[static_cast<size_t>(Of(value).storage)].bytes; }
  // Whether the value can never be recomputed, or is never discarded, because the program holds it.
  bool IsOnce(ValueId value) const {
    const Storage& storage = graph_.storages[static_cast<size_t>(Of(value).storage)];
    if (keeps_order_ && storage.held && storage.movable) return true;
    return Of(value).maker < 0 || graph_.operators[static_cast<size_t>(Of(value).maker)].once;
  }

  void AddThere(OperatorId at);
  void AddHeld(OperatorId at);
  Corner Solve(Wide per_time, Wide per_byte);
  std::optional<Relaxation> Relax(Bytes budget);
  OperatorId Difference(const Corner& above, const Corner& below) const;
  Corner CornerOf(const std::vector<bool>& again) const;  // drops reruns that nothing needs
  std::vector<OperatorId> RunsFor(OperatorId op, std::vector<bool> again, const std::vector<bool>& held) const;
  std::optional<Corner> ExchangedOnce(const Corner& now, Bytes budget) const;

  const Graph& graph_;
  const Values& values_;
  const bool keeps_order_;
  std::vector<bool> there_;      // by value: resident at `at` in any case
  std::vector<ValueId> wanted_;  // except those in `there_`
  std::vector<Fixed> fixed_;     // by operator
  FlowNetwork network_;          // of Solve(), with its nodes
  std::vector<int32_t> node_;    // by value
  std::vector<int32_t> run_;     // by operator
  Bytes base_ = 0;               // of the values in `there_` and the workspace
  Bytes all_ = 0;
  Nanoseconds total_ = 0;  // more than the time of any choice
};

}  // namespace hotpack::remat
