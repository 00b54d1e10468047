#include "remat/baselines/tflms.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "remat/baselines/fastest.h"
#include "remat/baselines/wait_for_memory.h"
#include "remat/core/schedule_builder.h"

namespace hotpack::remat {
namespace {

// Returns the gaps that span more than `threshold` operators, in topological order of where they begin.
std::vector<GapId> Candidates(const Graph& graph, const Values& values, int threshold) {
  std::vector<GapId> gaps;
  const auto operators = static_cast<OperatorId>(graph.operators.size());
  for (size_t g = 0; g < values.gaps.size(); ++g) {
    const Gap& gap = values.gaps[g];
    const Value& value = values.values[static_cast<size_t>(gap.value)];
    const Storage& storage = graph.storages[static_cast<size_t>(value.storage)];
    const bool far = value.maker >= 0 && gap.before < operators && gap.before - gap.after > std::max(1, threshold);
    if (far && storage.bytes > 0 && storage.kind != StorageKind::kWeight) gaps.push_back(static_cast<GapId>(g));
  }
  std::stable_sort(gaps.begin(), gaps.end(), [&](GapId a, GapId b) {
    return values.gaps[static_cast<size_t>(a)].after < values.gaps[static_cast<size_t>(b)].after;
  });
  return gaps;
}

bool Uses(const Operator& op, StorageId id) {
  const auto in = [id](const std::vector<StorageId>& list) {
    return std::find(list.begin(), list.end(), id) != list.end();
  };
  return in(op.reads) || in(op.updates);
}

// Returns the action before which the copy back of action `prefetch` begins: `ahead` runs before its use, but not
// before the drop.
size_t BeginOfCopyBack(const Graph& graph, const Schedule& schedule, size_t prefetch, int ahead) {
  const StorageId id = schedule.actions[prefetch].target;
  size_t at = prefetch + 1;
  const auto uses = [&](const Action& action) {
    return action.kind == ActionKind::kRun && Uses(graph.operators[static_cast<size_t>(action.target)], id);
  };
  while (at < schedule.actions.size() && !uses(schedule.actions[at])) ++at;
  for (int runs = 0; at > 0 && runs < ahead;) {
    const Action& before = schedule.actions[at - 1];
    if (before.kind == ActionKind::kDrop && before.target == id) break;
    --at;
    runs += before.kind == ActionKind::kRun ? 1 : 0;
  }
  return at;
}

Schedule PlaceCopiesBack(const Graph& graph, const Schedule& schedule, int ahead) {
  std::vector<std::vector<size_t>> before(schedule.actions.size() + 1);
  for (size_t i = 0; i < schedule.actions.size(); ++i) {
    if (schedule.actions[i].kind == ActionKind::kPrefetch)
      before[BeginOfCopyBack(graph, schedule, i, ahead)].push_back(i);
  }
  Schedule placed = {.actions = {}, .saved_states = schedule.saved_states};
  for (size_t i = 0; i < before.size(); ++i) {
    for (size_t prefetch : before[i]) placed.actions.push_back(schedule.actions[prefetch]);
    if (i < schedule.actions.size() && schedule.actions[i].kind != ActionKind::kPrefetch)
      placed.actions.push_back(schedule.actions[i]);
  }
  return placed;
}

}  // namespace

int TflmsCandidates(const Graph& graph, const Values& values, int threshold) {
  return static_cast<int>(Candidates(graph, values, threshold).size());
}

Schedule ScheduleWithTflms(const Graph& graph, const Values& values, const TflmsOptions& options, Bytes budget,
                           const Machine& machine) {
  std::vector<GapAction> ways(values.gaps.size(), GapAction::kKeep);
  const std::vector<GapId> candidates = Candidates(graph, values, options.threshold);
  for (size_t i = 0; i < candidates.size() && i < static_cast<size_t>(options.tensors); ++i)
    ways[static_cast<size_t>(candidates[i])] = GapAction::kOffload;
  const Schedule schedule = BuildSchedule(graph, values, ways, machine).schedule;
  return WaitForMemory(graph, PlaceCopiesBack(graph, schedule, std::max(1, options.ahead)), budget);
}

absl::StatusOr<Schedule> ScheduleByTflms(const Graph& graph, const Values& values, Bytes budget, const Machine& machine,
                                         int64_t time_limit_ns) {
  const auto begin = std::chrono::steady_clock::now();
  Fastest fastest(graph, budget, machine);
  constexpr int kMaxTried = 64;
  for (const int threshold : {1, 4, 16}) {
    const int candidates = TflmsCandidates(graph, values, threshold);
    for (const int ahead : {1, 4, 16}) {
      for (int i = 0; i <= std::min(candidates, kMaxTried); ++i) {
        if ((std::chrono::steady_clock::now() - begin).count() > time_limit_ns) return fastest.Take();
        const int tensors =
            candidates <= kMaxTried ? i : static_cast<int>(static_cast<int64_t>(candidates) * i / kMaxTried);
        fastest.Add(ScheduleWithTflms(graph, values, {.threshold = threshold, .tensors = tensors, .ahead = ahead},
                                      budget, machine));
      }
    }
  }
  return fastest.Take();
}

}  // namespace hotpack::remat
