#include "remat/chen/plans.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "packer/pack.h"
#include "remat/chen/recursion.h"
#include "remat/core/verifier.h"

namespace hotpack::remat {
namespace {

constexpr int64_t kPackNs = 300'000'000;
constexpr int kMaxLevels = 12;

struct Candidate {
  Schedule schedule;
  Outcome outcome;
};

class Candidates {
 public:
  Candidates(const Graph& graph, const Values& values, const Machine& machine)
      : graph_(graph),
        values_(values),
        machine_(machine),
        holds_(std::any_of(graph.storages.begin(), graph.storages.end(),
                           [](const Storage& storage) { return storage.held; })) {}

  void Add(Schedule schedule) {
    absl::StatusOr<Outcome> outcome = Simulate(graph_, schedule, machine_);
    if (outcome.ok()) all_.push_back({std::move(schedule), *std::move(outcome)});
  }
  void AddMirrored(const std::vector<int32_t>& counts) {
    absl::StatusOr<Schedule> schedule = ScheduleByMirror(graph_, values_, counts);
    // A mirrored graph knows no storages that the program holds.
    if (schedule.ok() && (!holds_ || Verify(graph_, *schedule).empty())) Add(*std::move(schedule));
  }
  // Returns the fastest plan whose arena is at most the budget.
  absl::StatusOr<Schedule> Fastest(Bytes budget) {
    std::stable_sort(all_.begin(), all_.end(), [](const Candidate& a, const Candidate& b) {
      return std::pair(a.outcome.time, a.outcome.live_peak) < std::pair(b.outcome.time, b.outcome.live_peak);
    });
    Bytes least = INT64_MAX;
    for (Candidate& candidate : all_) {
      if (candidate.outcome.live_peak > budget) {
        least = std::min(least, candidate.outcome.live_peak);
        continue;
      }
      const PackResult packed =
          Pack(ToInstance(candidate.outcome.residencies), {.time_limit_ns = kPackNs, .target_height = budget});
      if (packed.status != PackStatus::kOk) return absl::InternalError(PackStatusText(packed.status));
      if (packed.placement.height <= budget) return std::move(candidate.schedule);
      least = std::min(least, packed.placement.height);
    }
    return absl::ResourceExhaustedError(
        absl::StrCat("no plan found for a budget of ", budget, " bytes; the least found needs ", least));
  }

 private:
  const Graph& graph_;
  const Values& values_;
  const Machine& machine_;
  const bool holds_;
  std::vector<Candidate> all_;
};

}  // namespace

std::vector<int32_t> CountsOf(const std::vector<bool>& again) {
  return std::vector<int32_t>(again.begin(), again.end());
}

std::vector<MirrorPlan> SearchMirrors(const Graph& graph, const Values& values, const std::vector<Cut>& cuts,
                                      int points) {
  std::vector<MirrorPlan> plans;
  const auto add = [&](Bytes budget) {
    MirrorPlan& plan = plans.emplace_back();
    plan.budget = budget;
    plan.segments = PlanSegments(graph, cuts, budget);
    plan.mirrored = MirrorGraph(graph, values, CountsOf(plan.segments.again));
    plan.bytes = Allocate(plan.mirrored.graph, Sharing::kAll).bytes;
    plan.cost = TotalCost(plan.mirrored.graph);
  };
  add(0);
  for (Bytes budget : BudgetsOfSearch(plans[0].segments, points)) add(budget);
  return plans;
}

std::vector<MirrorPlan> SearchMirrors(const Graph& graph, const Values& values, int points) {
  std::vector<MirrorPlan> plans = SearchMirrors(graph, values, CutsAt(CandidatesOf(graph, values)), points);
  std::vector<MirrorPlan> narrow = SearchMirrors(graph, values, NarrowCuts(graph, values), points);
  std::move(narrow.begin(), narrow.end(), std::back_inserter(plans));
  return plans;
}

const MirrorPlan& LeastOf(const std::vector<MirrorPlan>& plans) {
  return *std::min_element(plans.begin(), plans.end(), [](const MirrorPlan& a, const MirrorPlan& b) {
    return std::pair(a.bytes, a.cost) < std::pair(b.bytes, b.cost);
  });
}

std::vector<MemoryLine> MemoryLines(const Graph& graph, const Values& values) {
  const Nanoseconds cost = TotalCost(graph);
  const Graph dropped = MirrorGraph(graph, values, CountsOf(CheapOperators(graph))).graph;
  const std::vector<MirrorPlan> plans = SearchMirrors(graph, values);
  const MirrorPlan& least = LeastOf(plans);
  return {{"no optimization", Allocate(graph, Sharing::kNone).bytes, cost},
          {"inplace", Allocate(graph, Sharing::kInPlace).bytes, cost},
          {"sharing", Allocate(graph, Sharing::kAll).bytes, cost},
          {"drop bn-relu", Allocate(dropped, Sharing::kAll).bytes, TotalCost(dropped)},
          {"sublinear plan", least.bytes, least.cost}};
}

absl::StatusOr<Schedule> ScheduleByChen(const Graph& graph, const Values& values, Bytes budget,
                                        const Machine& machine) {
  Candidates candidates(graph, values, machine);
  candidates.Add(
      BuildSchedule(graph, values, std::vector<GapAction>(values.gaps.size(), GapAction::kKeep), machine).schedule);
  for (const ChenPlan& plan : SearchSegments(graph, values, machine))
    candidates.Add(ScheduleOf(graph, values, plan, machine));
  const std::vector<bool> cheap = CheapOperators(graph);
  candidates.Add(BuildSchedule(graph, values, DropForward(graph, values, cheap), machine, &cheap).schedule);
  const std::vector<Cut> narrow = NarrowCuts(graph, values);
  for (const MirrorPlan& plan : SearchMirrors(graph, values, narrow))
    candidates.AddMirrored(CountsOf(plan.segments.again));
  for (const std::vector<Cut>& cuts : {CutsAt(CandidatesOf(graph, values)), narrow}) {
    for (int k = 1; k <= 3; ++k) {
      std::vector<int32_t> before;
      for (int levels = 2; levels <= kMaxLevels; ++levels) {
        std::vector<int32_t> counts = RecursiveCounts(graph, cuts, k, levels);
        if (counts == before) break;  // no cut is left
        candidates.AddMirrored(counts);
        before = std::move(counts);
      }
    }
  }
  return candidates.Fastest(budget);
}

}  // namespace hotpack::remat
