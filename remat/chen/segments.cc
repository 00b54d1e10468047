#include "remat/chen/segments.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace hotpack::remat {
namespace {

Bytes OutputOf(const Graph& graph, const Operator& op) {
  Bytes sum = 0;
  for (StorageId id : op.writes) sum += graph.storages[static_cast<size_t>(id)].bytes;
  return sum;
}

// Returns the first operator behind the forward pass.
OperatorId ForwardEnd(const Graph& graph) {
  const auto end =
      std::find_if(graph.operators.begin(), graph.operators.end(), [](const Operator& op) { return !IsForward(op); });
  return static_cast<OperatorId>(end - graph.operators.begin());
}

}  // namespace

Segments PlanSegments(const Graph& graph, const std::vector<bool>& candidates, Bytes budget) {
  Segments segments;
  segments.again.resize(graph.operators.size());
  Bytes temp = 0;
  for (size_t i = 0; i < graph.operators.size(); ++i) {
    if (!IsForward(graph.operators[i])) continue;
    const Bytes output = OutputOf(graph, graph.operators[i]);
    temp += output;
    if (candidates[i] && temp > budget) {
      segments.x += output;
      segments.y = std::max(segments.y, temp);
      temp = 0;
    } else {
      segments.again[i] = true;
    }
  }
  return segments;
}

std::vector<Bytes> BudgetsOfSearch(const Segments& without_budget, int points) {
  const double middle = std::sqrt(static_cast<double>(without_budget.x) * static_cast<double>(without_budget.y));
  std::vector<Bytes> budgets = {static_cast<Bytes>(middle)};
  for (int i = 0; i < points; ++i) {
    const double exponent = points == 1 ? 0 : static_cast<double>(i) / (points - 1) - 0.5;
    budgets.push_back(static_cast<Bytes>(middle * std::exp2(exponent)));
  }
  return budgets;
}

std::vector<bool> SplittingPoints(const Graph& graph, const Values& values) {
  const OperatorId end = ForwardEnd(graph);
  std::vector<bool> points(graph.operators.size());
  // Changes of the number of results that are used later in the forward pass.
  std::vector<int64_t> changes(static_cast<size_t>(end) + 1);
  for (const Value& value : values.values) {
    if (value.maker < 0 || value.maker >= end) continue;
    const auto last = std::lower_bound(value.uses.begin(), value.uses.end(), end);
    if (last == value.uses.begin()) continue;
    ++changes[static_cast<size_t>(value.maker)];
    --changes[static_cast<size_t>(*(last - 1))];
  }
  int64_t wanted = 0;
  for (OperatorId op = 0; op < end; ++op) {
    wanted += changes[static_cast<size_t>(op)];
    points[static_cast<size_t>(op)] = wanted == 1 && graph.operators[static_cast<size_t>(op)].writes.size() == 1;
  }
  return points;
}

std::vector<bool> CheapOperators(const Graph& graph) {
  std::vector<bool> again(graph.operators.size()), made(graph.storages.size());
  for (size_t i = 0; i < again.size(); ++i) {
    const Operator& op = graph.operators[i];
    const auto is_made = [&made](StorageId id) { return made[static_cast<size_t>(id)]; };
    const auto inputs = std::count_if(op.reads.begin(), op.reads.end(), is_made) +
                        std::count_if(op.updates.begin(), op.updates.end(), is_made);
    again[i] = IsForward(op) && !op.heavy && inputs <= 1;
    for (StorageId id : op.writes) made[static_cast<size_t>(id)] = true;
  }
  return again;
}

std::vector<GapAction> DropForward(const Graph& graph, const Values& values, const std::vector<bool>& again) {
  const OperatorId end = ForwardEnd(graph);
  std::vector<GapAction> ways(values.gaps.size(), GapAction::kKeep);
  for (size_t g = 0; g < ways.size(); ++g) {
    const Gap& gap = values.gaps[g];
    const OperatorId maker = values.values[static_cast<size_t>(gap.value)].maker;
    const bool crosses =
        gap.after < end && gap.before >= end && static_cast<size_t>(gap.before) < graph.operators.size();
    if (crosses && maker >= 0 && again[static_cast<size_t>(maker)]) ways[g] = GapAction::kRecompute;
  }
  return ways;
}

Schedule ScheduleOf(const Graph& graph, const Values& values, const ChenPlan& plan, const Machine& machine) {
  return BuildSchedule(graph, values, plan.ways, machine, &plan.segments.again).schedule;
}

std::vector<ChenPlan> SearchSegments(const Graph& graph, const Values& values, const Machine& machine, int points) {
  std::vector<bool> candidates = SplittingPoints(graph, values);
  if (std::count(candidates.begin(), candidates.end(), true) < 2) candidates.assign(candidates.size(), true);
  std::vector<ChenPlan> plans;
  const auto add = [&](Bytes budget) {
    ChenPlan plan = {.budget = budget, .segments = PlanSegments(graph, candidates, budget), .ways = {}, .outcome = {}};
    plan.ways = DropForward(graph, values, plan.segments.again);
    absl::StatusOr<Outcome> outcome = Simulate(graph, ScheduleOf(graph, values, plan, machine), machine);
    if (!outcome.ok()) return;
    plan.outcome = *std::move(outcome);
    plans.push_back(std::move(plan));
  };
  add(0);
  if (plans.empty()) return plans;
  for (Bytes budget : BudgetsOfSearch(plans[0].segments, points)) add(budget);
  return plans;
}

}  // namespace hotpack::remat
