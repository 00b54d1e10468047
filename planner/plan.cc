#include "planner/plan.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "packer/pack.h"
#include "planner/chen.h"
#include "planner/dtr.h"
#include "planner/echo.h"
#include "planner/search.h"
#include "planner/verifier.h"

namespace hotpack::planner {
namespace {

constexpr std::pair<std::string_view, PlanAlgorithm> kNames[] = {{"auto", PlanAlgorithm::kAuto},
                                                                 {"search", PlanAlgorithm::kSearch},
                                                                 {"chen", PlanAlgorithm::kChen},
                                                                 {"echo", PlanAlgorithm::kEcho},
                                                                 {"dtr", PlanAlgorithm::kDtr}};
constexpr int64_t kPackNs = 300'000'000;

struct Candidate {
  const char* algorithm;
  Schedule schedule;
  Outcome outcome;
};

class Planner {
 public:
  Planner(const Graph& graph, const PlanOptions& options)
      : graph_(graph), options_(options), values_(ValuesOf(graph)), begin_(std::chrono::steady_clock::now()) {}

  absl::StatusOr<PlanAnswer> Run() {
    Add("program", Baseline(graph_));
    budget_ = options_.budget > 0 ? options_.budget : INT64_MAX;
    if (const Bytes least = LeastMemory(graph_, options_.swap); budget_ < least) {
      return absl::ResourceExhaustedError(absl::StrCat("a budget of ", budget_, " bytes: every plan needs at least ", least));
    }
    Add("program", Rebuild(graph_, values_, std::vector<Way>(values_.gaps.size(), Way::kHold), options_.machine).schedule);
    if (options_.budget <= 0) return Fastest();  // the step as it is
    const bool all = options_.algorithm == PlanAlgorithm::kAuto;
    if (all || options_.algorithm == PlanAlgorithm::kChen) AddChen();
    if (all || options_.algorithm == PlanAlgorithm::kEcho) {
      const EchoPlan plan = PlanByEcho(graph_, values_, options_.machine);
      Add("echo", Rebuild(graph_, values_, plan.ways, options_.machine, &plan.again).schedule);
    }
    if (all || options_.algorithm == PlanAlgorithm::kDtr) AddDtr();
    if (all || options_.algorithm == PlanAlgorithm::kSearch) AddSearch();
    return Fastest();
  }

 private:
  void Add(const char* algorithm, Schedule schedule) {
    absl::StatusOr<Outcome> outcome = Simulate(graph_, schedule, options_.machine);
    if (!outcome.ok()) return;  // the host has no room
    candidates_.push_back({algorithm, std::move(schedule), *std::move(outcome)});
  }
  void AddChen() {
    for (const ChenPlan& plan : SearchSegments(graph_, values_, options_.machine)) {
      Add("chen", ScheduleOf(graph_, values_, plan, options_.machine));
    }
    const std::vector<bool> cheap = CheapOperators(graph_);
    Add("chen", Rebuild(graph_, values_, DropForward(graph_, values_, cheap), options_.machine, &cheap).schedule);
  }
  // Its arena may be above what is live at once: then it gets less.
  void AddDtr() {
    for (const double part : {1.0, 0.99, 0.97, 0.94}) {
      absl::StatusOr<Schedule> schedule = ScheduleByDtr(graph_, values_, static_cast<Bytes>(part * static_cast<double>(budget_)));
      if (!schedule.ok()) return;
      Add("dtr", *std::move(schedule));
    }
  }
  void AddSearch() {
    SearchOptions search;
    search.machine = options_.machine;
    search.swap = options_.swap;
    search.seed = options_.seed;
    search.levels = 12;
    search.improvements = 100'000;
    search.improve_all = false;
    search.stop_at = budget_;
    search.time_limit_ns = options_.time_limit_ns;
    for (const Plan& plan : Search(graph_, values_, search).plans) {
      if (plan.live_peak <= budget_) Add("search", Rebuild(graph_, values_, plan.ways, options_.machine).schedule);
    }
  }

  absl::StatusOr<PlanAnswer> Fastest() {
    std::stable_sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
      return std::pair(a.outcome.time, a.outcome.live_peak) < std::pair(b.outcome.time, b.outcome.live_peak);
    });
    Bytes least = INT64_MAX;
    for (Candidate& candidate : candidates_) {
      if (candidate.outcome.live_peak > budget_) {  // and so is its arena
        least = std::min(least, candidate.outcome.live_peak);
        continue;
      }
      PlanAnswer answer;
      answer.instance = ToInstance(candidate.outcome.stays);
      PackResult packed = Pack(answer.instance, {.time_limit_ns = kPackNs, .enough = options_.budget});
      if (packed.status != PackStatus::kOk) return absl::InternalError(PackStatusText(packed.status));
      least = std::min(least, packed.placement.height);
      if (packed.placement.height > budget_) continue;
      if (std::string fault = Verify(graph_, candidate.schedule); !fault.empty()) {
        return absl::InternalError(absl::StrCat("the plan of ", candidate.algorithm, " is wrong, please report this: ", fault));
      }
      answer.algorithm = candidate.algorithm;
      answer.schedule = std::move(candidate.schedule);
      answer.outcome = std::move(candidate.outcome);
      answer.placement = std::move(packed.placement);
      answer.arena = answer.placement.height;
      answer.recomputed = answer.outcome.runs_again;
      answer.swapped = std::count_if(answer.schedule.actions.begin(), answer.schedule.actions.end(),
                                     [](const Action& action) { return action.kind == ActionKind::kOffload; });
      answer.lower_bound_time = answer.baseline_time = TotalCost(graph_);
      answer.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
      return answer;
    }
    return absl::ResourceExhaustedError(absl::StrCat("no plan found for a budget of ", budget_, " bytes; the least found needs ", least));
  }

  const Graph& graph_;
  const PlanOptions& options_;
  const Values values_;
  const std::chrono::steady_clock::time_point begin_;
  Bytes budget_ = 0;
  std::vector<Candidate> candidates_;
};

}  // namespace

std::optional<PlanAlgorithm> PlanAlgorithmFromName(std::string_view name) {
  const auto found = std::find_if(std::begin(kNames), std::end(kNames), [name](const auto& entry) { return entry.first == name; });
  return found == std::end(kNames) ? std::nullopt : std::optional(found->second);
}

absl::StatusOr<PlanAnswer> MakePlan(const Graph& graph, const PlanOptions& options) { return Planner(graph, options).Run(); }

}  // namespace hotpack::planner
