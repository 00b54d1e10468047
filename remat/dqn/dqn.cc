#include "remat/dqn/dqn.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "remat/baselines/wait_for_memory.h"

namespace hotpack::remat {
namespace {

// Turns episodes into schedules and keeps the best.
class Judgement {
 public:
  Judgement(const Graph& graph, const Values& values, const Sequence& sequence, Bytes budget, const Machine& machine)
      : graph_(graph), values_(values), sequence_(sequence), budget_(budget), machine_(machine) {}

  std::optional<Nanoseconds> operator()(const std::vector<AgentAction>& choices) {
    Schedule schedule = WaitForMemory(
        graph_, BuildSchedule(graph_, values_, WaysOf(sequence_, values_, choices), machine_).schedule, budget_);
    absl::StatusOr<Outcome> outcome = Simulate(graph_, schedule, machine_);
    if (!outcome.ok()) return std::nullopt;  // the host's memory is too small
    least_ = std::min(least_, outcome->live_peak);
    excess_ = std::max<Bytes>(0, outcome->live_peak - budget_);
    if (excess_ > 0) return std::nullopt;
    const Nanoseconds time = outcome->time;
    if (!best_ || time < best_->outcome.time)
      best_ = DqnPlan{.schedule = std::move(schedule), .outcome = *std::move(outcome)};
    return time;
  }

  Bytes excess() const { return excess_; }  // of the last episode
  Bytes least() const { return least_; }
  std::optional<DqnPlan>& best() { return best_; }

 private:
  const Graph& graph_;
  const Values& values_;
  const Sequence& sequence_;
  const Bytes budget_;
  const Machine& machine_;
  Bytes least_ = INT64_MAX, excess_ = 0;
  std::optional<DqnPlan> best_;
};

}  // namespace

std::vector<GapAction> WaysOf(const Sequence& sequence, const Values& values, const std::vector<AgentAction>& choices) {
  std::vector<GapAction> ways(values.gaps.size(), GapAction::kKeep);
  for (AgentAction choice : choices) {
    if (choice.deed == Deed::kNothing) continue;
    const GapId gap = sequence.absences[static_cast<size_t>(choice.absence)].gap;
    ways[static_cast<size_t>(gap)] = choice.deed == Deed::kOffload ? GapAction::kOffload : GapAction::kRecompute;
  }
  return ways;
}

absl::StatusOr<DqnPlan> PlanByDqn(const Graph& graph, const Values& values, Bytes budget, const DqnOptions& options) {
  const Sequence sequence = SequenceOf(graph, values, options.machine);
  Judgement judgement(graph, values, sequence, budget, options.machine);
  judgement({});  // the unmodified program
  Environment environment(sequence, budget, true);
  DqnPlan plan;
  if (!judgement.best() && !sequence.operations.empty()) {
    const Judge judge = [&](const Episode& episode) {
      const std::optional<Nanoseconds> cost = judgement(episode.choices);
      if (!cost) environment.Lower(judgement.excess());
      return cost;
    };
    Learning learning = Learn(&environment, options.learning, options.start, judge);
    plan.weights = std::move(learning.weights);
    plan.episodes = learning.episodes;
    plan.won = static_cast<int>(std::count_if(learning.overheads.begin(), learning.overheads.end(),
                                              [](Nanoseconds each) { return each < INT64_MAX; }));
    plan.overheads = std::move(learning.overheads);
  }
  if (!judgement.best()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no plan found for a budget of ", budget, " bytes; the least found needs ", judgement.least()));
  }
  plan.schedule = std::move(judgement.best()->schedule);
  plan.outcome = std::move(judgement.best()->outcome);
  return plan;
}

}  // namespace hotpack::remat
