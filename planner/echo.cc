#include "planner/echo.h"

#include <algorithm>
#include <set>
#include <vector>

#include "planner/chen.h"

namespace hotpack::planner {
namespace {

class Analysis {
 public:
  Analysis(const Graph& graph, const Values& values) : graph_(graph), values_(values), again_(graph.operators.size()), in_(graph.operators.size(), -1) {
    const auto end = std::find_if(graph.operators.begin(), graph.operators.end(), [](const Operator& op) { return op.phase != Phase::kForward; });
    forward_ = static_cast<OperatorId>(end - graph.operators.begin());
  }

  EchoPlan Run() {
    // Outputs of the forward pass: what nothing in it uses. The last ones first.
    for (OperatorId op = forward_ - 1; op >= 0; --op) {
      if (!IsHeavy(op) && in_[static_cast<size_t>(op)] < 0 && !FeedsForward(op)) Take(op);
    }
    // Subgraphs behind heavy operators.
    for (OperatorId op = forward_ - 1; op >= 0; --op) {
      if (!IsHeavy(op)) continue;
      for (ValueId input : values_.inputs[static_cast<size_t>(op)]) {
        const OperatorId maker = Of(input).maker;
        if (maker >= 0 && !IsHeavy(maker) && in_[static_cast<size_t>(maker)] < 0) Take(maker);
      }
    }
    for (OperatorId op = 0; op < forward_; ++op) {
      if (again_[static_cast<size_t>(op)]) Weigh(op);
    }
    return {again_, subgraphs_, {}};
  }

 private:
  const Value& Of(ValueId value) const { return values_.values[static_cast<size_t>(value)]; }
  bool IsHeavy(OperatorId op) const { return graph_.operators[static_cast<size_t>(op)].heavy; }
  Bytes BytesOf(ValueId value) const { return graph_.storages[static_cast<size_t>(Of(value).storage)].bytes; }
  bool FeedsForward(OperatorId op) const {
    for (ValueId output : values_.outputs[static_cast<size_t>(op)]) {
      if (!Of(output).uses.empty() && Of(output).uses.front() < forward_) return true;
    }
    return false;
  }
  bool IsNeededBehind(ValueId value) const { return Of(value).left || (!Of(value).uses.empty() && Of(value).uses.back() >= forward_); }
  // Is there whatever is planned: not one's to let go.
  bool IsAlwaysThere(ValueId value) const {
    const Storage& storage = graph_.storages[static_cast<size_t>(Of(value).storage)];
    return Of(value).maker < 0 && storage.kept;
  }

  // The backward pass: everything that `op` follows from, up to what is heavy.
  void Take(OperatorId op) {
    std::vector<OperatorId> subgraph, open = {op};
    in_[static_cast<size_t>(op)] = subgraphs_;
    while (!open.empty()) {
      const OperatorId at = open.back();
      open.pop_back();
      subgraph.push_back(at);
      for (ValueId input : values_.inputs[static_cast<size_t>(at)]) {
        const OperatorId maker = Of(input).maker;
        if (maker < 0 || IsHeavy(maker) || in_[static_cast<size_t>(maker)] >= 0) continue;
        in_[static_cast<size_t>(maker)] = subgraphs_;
        open.push_back(maker);
      }
    }
    for (OperatorId each : subgraph) again_[static_cast<size_t>(each)] = !graph_.operators[static_cast<size_t>(each)].once;
    ++subgraphs_;
  }

  // Lines 22 to 30: what it and all that share an edge with it would let go, against what they would keep.
  void Weigh(OperatorId op) {
    std::set<ValueId> kept, gone;
    std::set<OperatorId> together = {op};
    for (ValueId input : values_.inputs[static_cast<size_t>(op)]) {
      // What is made again itself needs no memory between the passes.
      const OperatorId maker = Of(input).maker;
      if (maker >= 0 && again_[static_cast<size_t>(maker)]) return;
      if (IsAlwaysThere(input)) continue;
      for (OperatorId use : Of(input).uses) {
        if (use >= forward_) {
          kept.insert(input);
        } else if (again_[static_cast<size_t>(use)]) {
          together.insert(use);
        }
      }
    }
    for (OperatorId each : together) {
      for (ValueId output : values_.outputs[static_cast<size_t>(each)]) kept.insert(output);
      for (ValueId input : values_.inputs[static_cast<size_t>(each)]) {
        const OperatorId maker = Of(input).maker;
        const bool stored = maker < 0 ? !IsAlwaysThere(input) : !again_[static_cast<size_t>(maker)];
        if (stored) gone.insert(input);
      }
    }
    Bytes alloc = 0, release = 0;
    for (ValueId value : kept) alloc += BytesOf(value);
    for (ValueId value : gone) release += BytesOf(value);
    if (release < alloc) return;
    for (OperatorId each : together) again_[static_cast<size_t>(each)] = false;
  }

  const Graph& graph_;
  const Values& values_;
  std::vector<bool> again_;
  std::vector<int64_t> in_;  // by operator: its subgraph; -1
  OperatorId forward_ = 0;   // the first operator behind the forward pass
  int64_t subgraphs_ = 0;
};

}  // namespace

EchoPlan PlanByEcho(const Graph& graph, const Values& values, const Machine& machine) {
  EchoPlan plan = Analysis(graph, values).Run();
  plan.ways = DropForward(graph, values, plan.again);
  const std::vector<Way> nothing(values.gaps.size(), Way::kHold);
  const absl::StatusOr<Outcome> with = Simulate(graph, Rebuild(graph, values, plan.ways, machine, &plan.again).schedule, machine);
  const absl::StatusOr<Outcome> without = Simulate(graph, Rebuild(graph, values, nothing, machine).schedule, machine);
  if (!with.ok() || !without.ok() || with->live_peak > without->live_peak) {
    plan.again.assign(plan.again.size(), false);
    plan.ways = nothing;
  }
  return plan;
}

}  // namespace hotpack::planner
