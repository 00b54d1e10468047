#include "remat/baselines/superneurons.h"

#include <algorithm>
#include <vector>

#include "remat/baselines/fastest.h"
#include "remat/baselines/wait_for_memory.h"
#include "remat/chen/segments.h"
#include "remat/core/load.h"
#include "remat/core/schedule_builder.h"

namespace hotpack::remat {
namespace {

Bytes BytesOf(const Graph& graph, const Values& values, GapId gap) {
  const ValueId value = values.gaps[static_cast<size_t>(gap)].value;
  return graph.storages[static_cast<size_t>(values.values[static_cast<size_t>(value)].storage)].bytes;
}

// Returns by operator whether it makes a checkpoint. Operators in place on a checkpoint count as the same tensor.
std::vector<bool> Checkpoints(const Graph& graph) {
  std::vector<bool> operators(graph.operators.size()), tensors(graph.storages.size());
  for (size_t i = 0; i < operators.size(); ++i) {
    const Operator& op = graph.operators[i];
    if (op.phase != Phase::kForward) continue;
    operators[i] = op.heavy;
    for (const InPlace& pair : op.in_place) operators[i] = operators[i] || tensors[static_cast<size_t>(pair.read)];
    for (StorageId id : op.updates) operators[i] = operators[i] || tensors[static_cast<size_t>(id)];
    if (!operators[i]) continue;
    for (const std::vector<StorageId>* list : {&op.writes, &op.updates}) {
      for (StorageId id : *list) tensors[static_cast<size_t>(id)] = true;
    }
  }
  return operators;
}

// Returns the most bytes that one operator needs: l_peak, a lower bound for every plan.
Bytes LargestOperator(const Graph& graph) {
  Bytes most = 0;
  for (const Operator& op : graph.operators) {
    Bytes sum = op.workspace;
    for (const std::vector<StorageId>* list : {&op.reads, &op.writes, &op.updates}) {
      for (StorageId id : *list) sum += graph.storages[static_cast<size_t>(id)].bytes;
    }
    most = std::max(most, sum);
  }
  return most;
}

// Chooses speed-centric or memory-centric recomputation by segment: kRecompute or kRecomputeOnce.
std::vector<GapAction> Recompute(const Graph& graph, const Values& values, const std::vector<bool>& cheap) {
  std::vector<GapAction> ways = DropForward(graph, values, cheap);
  std::vector<int32_t> segment_of(graph.operators.size());
  int32_t segment = 0;
  for (size_t i = 0; i < segment_of.size(); ++i) segment_of[i] = graph.operators[i].heavy ? ++segment : segment;
  std::vector<Bytes> bytes(static_cast<size_t>(segment) + 1);
  const auto segment_of_gap = [&](size_t gap) {
    const OperatorId maker = values.values[static_cast<size_t>(values.gaps[gap].value)].maker;
    return static_cast<size_t>(segment_of[static_cast<size_t>(maker)]);
  };
  for (size_t g = 0; g < ways.size(); ++g) {
    if (ways[g] == GapAction::kRecompute) bytes[segment_of_gap(g)] += BytesOf(graph, values, static_cast<GapId>(g));
  }
  const Bytes largest = LargestOperator(graph);
  for (size_t g = 0; g < ways.size(); ++g) {
    if (ways[g] == GapAction::kRecompute && bytes[segment_of_gap(g)] > largest) ways[g] = GapAction::kRecomputeOnce;
  }
  return ways;
}

// Returns the bytes resident at the first run of each operator, or since the one before.
std::vector<Bytes> LoadByOperator(const Graph& graph, const Schedule& schedule, const Machine& machine) {
  std::vector<Bytes> load(graph.operators.size());
  const absl::StatusOr<Outcome> outcome = Simulate(graph, schedule, machine);
  if (!outcome.ok()) return load;
  const std::vector<Bytes> by_clock = LoadOf(outcome->residencies);
  std::vector<bool> has_run(graph.operators.size());
  Bytes most = 0;
  size_t clock = 1;  // as the simulator counts runs and copies back
  for (const Action& action : schedule.actions) {
    if (action.kind != ActionKind::kRun && action.kind != ActionKind::kPrefetch) continue;
    most = std::max(most, clock < by_clock.size() ? by_clock[clock] : 0);
    ++clock;
    const auto op = static_cast<size_t>(action.target);
    if (action.kind != ActionKind::kRun || has_run[op]) continue;
    has_run[op] = true;
    load[op] = most;
    most = 0;
  }
  return load;
}

// The tensor cache: where an operator exceeds the budget, the least recently used values go to the host.
void SwapLeastRecentlyUsed(const Graph& graph, const Values& values, const std::vector<bool>& checkpoints, Bytes budget,
                           std::vector<Bytes> load, std::vector<GapAction>* ways) {
  std::vector<GapId> gaps;
  const auto operators = static_cast<OperatorId>(graph.operators.size());
  for (size_t g = 0; g < ways->size(); ++g) {
    const Gap& gap = values.gaps[g];
    const OperatorId maker = values.values[static_cast<size_t>(gap.value)].maker;
    const bool checkpoint = maker >= 0 && checkpoints[static_cast<size_t>(maker)];
    const bool open = gap.before > gap.after + 1 && gap.before < operators;
    if (checkpoint && open && (*ways)[g] == GapAction::kKeep && BytesOf(graph, values, static_cast<GapId>(g)) > 0)
      gaps.push_back(static_cast<GapId>(g));
  }
  std::stable_sort(gaps.begin(), gaps.end(), [&](GapId a, GapId b) {
    return values.gaps[static_cast<size_t>(a)].after < values.gaps[static_cast<size_t>(b)].after;
  });
  for (OperatorId op = 0; op < operators; ++op) {
    for (GapId g : gaps) {
      if (load[static_cast<size_t>(op)] <= budget) break;
      const Gap& gap = values.gaps[static_cast<size_t>(g)];
      if ((*ways)[static_cast<size_t>(g)] == GapAction::kOffload || gap.after >= op || gap.before <= op) continue;
      (*ways)[static_cast<size_t>(g)] = GapAction::kOffload;
      for (OperatorId at = op; at < gap.before; ++at) load[static_cast<size_t>(at)] -= BytesOf(graph, values, g);
    }
  }
}

}  // namespace

Schedule ScheduleWithSuperNeurons(const Graph& graph, const Values& values, SuperNeuronsMode mode, Bytes budget,
                                  const Machine& machine) {
  const std::vector<bool> checkpoints = Checkpoints(graph);
  std::vector<bool> cheap = CheapOperators(graph);
  for (size_t i = 0; i < cheap.size(); ++i) cheap[i] = cheap[i] && !checkpoints[i];
  const bool recompute = mode != SuperNeuronsMode::kSwap;
  // BuildSchedule() holds the sources of recomputed values if their operators may not run again. Checkpoints on the
  // host are copied back instead.
  const std::vector<bool>* may_run_again = mode == SuperNeuronsMode::kRecompute ? &cheap : nullptr;
  std::vector<GapAction> ways(values.gaps.size(), GapAction::kKeep);
  if (recompute) ways = Recompute(graph, values, cheap);
  Schedule schedule = BuildSchedule(graph, values, ways, machine, may_run_again).schedule;
  if (mode != SuperNeuronsMode::kRecompute) {
    SwapLeastRecentlyUsed(graph, values, checkpoints, budget, LoadByOperator(graph, schedule, machine), &ways);
    schedule = BuildSchedule(graph, values, ways, machine, may_run_again).schedule;
  }
  return WaitForMemory(graph, schedule, budget);
}

absl::StatusOr<Schedule> ScheduleBySuperNeurons(const Graph& graph, const Values& values, Bytes budget,
                                                const Machine& machine) {
  Fastest fastest(graph, budget, machine);
  fastest.Add(
      BuildSchedule(graph, values, std::vector<GapAction>(values.gaps.size(), GapAction::kKeep), machine).schedule);
  for (const SuperNeuronsMode mode : {SuperNeuronsMode::kRecompute, SuperNeuronsMode::kSwap, SuperNeuronsMode::kBoth}) {
    fastest.Add(ScheduleWithSuperNeurons(graph, values, mode, budget, machine));
  }
  return fastest.Take();
}

}  // namespace hotpack::remat
