#include "remat/state_places.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <utility>

#include "remat/core/load.h"
#include "remat/core/update_slices.h"
#include "remat/core/values.h"
#include "remat/exact/bounds.h"

namespace hotpack::remat {
namespace {

using std::chrono::steady_clock;
using Slices = std::vector<std::vector<StorageId>>;

constexpr size_t kAtOnce = 2;  // parts that are tried at the same time, if tasks can run so
constexpr size_t kTrials = 6;  // parts that are tried at most
constexpr int64_t kShare = 3;  // one such part of the time limit is for first plans, the rest to go on from them

bool Searches(RematAlgorithm algorithm) {
  return algorithm == RematAlgorithm::kAuto || algorithm == RematAlgorithm::kSearch;
}

Graph WithAway(const Graph& graph, const Slices& slices, size_t count) {
  Graph away = graph;
  SendStateAway(slices, count, &away);
  return away;
}

struct Trial {
  Graph graph = {};
  PlanOptions options = {};
  const Decisions* from = nullptr;
  absl::StatusOr<RematPlan> plan = absl::UnknownError("not planned");
  void Run() { plan = MakeRematPlan(graph, options, from); }
};

// A part of the state: of the first `count` slices. No plan with it on the host takes less than `least_time`.
struct Part {
  Nanoseconds least_time = 0;
  size_t count = 0;
  // Whether its plans may be about as fast as those of a part with a lower bound.
  bool IsNear(const Part& other) const {
    constexpr double kNear = 1.03;
    return static_cast<double>(least_time) <= kNear * static_cast<double>(other.least_time);
  }
};

// Tries parts of the state, and keeps the fastest plan.
class Trials {
 public:
  Trials(const Graph& graph, const Slices& slices, const PlanOptions& options, const RunTasks& run_all)
      : graph_(graph), slices_(slices), options_(options), run_all_(run_all), begin_(steady_clock::now()) {}

  // The fewest slices whose state on the host leaves what any plan needs within the budget; all, if none does.
  // O(slices · size of the graph).
  size_t Fewest() const {
    for (size_t count = 0; count < slices_.size(); ++count) {
      if (LeastMemory(WithAway(graph_, slices_, count), true) <= options_.budget) return count;
    }
    return slices_.size();
  }
  // The parts to try, those first whose plans may be fastest: by bounds on their times, of few cuts each. Of equal ones
  // the smaller first. From `fewest` up to where bounds grow again, in a tenth of the time limit.
  std::vector<Part> ByBound(size_t fewest) const {
    constexpr size_t kEnough = 64;
    constexpr double kGrown = 1.1;
    std::vector<Part> parts;
    Nanoseconds least = INT64_MAX;
    const int64_t until = left() - options_.time_limit_ns / 10;
    for (size_t count = fewest; count <= slices_.size() && parts.size() < kEnough; ++count) {
      if (parts.size() >= kAtOnce && left() < until) break;
      parts.push_back({LeastTimeOf(count), count});
      least = std::min(least, parts.back().least_time);
      if (static_cast<double>(parts.back().least_time) > kGrown * static_cast<double>(least)) break;
    }
    std::stable_sort(parts.begin(), parts.end(),
                     [](const Part& a, const Part& b) { return a.least_time < b.least_time; });
    return parts;
  }
  // Tries these parts at the same time, equal ones with other seeds. `limit_ns`: of each search. They go on from the
  // plans of the last call, of the same parts.
  void Run(const std::vector<size_t>& counts, int64_t limit_ns) {
    ++rounds_;
    std::vector<Trial> trials(counts.size());
    std::vector<std::function<void()>> tasks;
    for (size_t i = 0; i < counts.size(); ++i) {
      trials[i].graph = WithAway(graph_, slices_, counts[i]);
      trials[i].options = options_;
      trials[i].options.time_limit_ns = std::max<int64_t>(1, limit_ns);
      trials[i].options.seed += static_cast<uint64_t>(rounds_ - 1) * kAtOnce;
      if (i > 0 && counts[i] == counts[0]) trials[i].options.seed += i;
      const auto before = last_.find(counts[i]);
      trials[i].from = before != last_.end() && before->second.choice ? &*before->second.choice : nullptr;
      tasks.emplace_back([trial = &trials[i]] { trial->Run(); });
    }
    run_all_(tasks);
    last_.clear();
    for (size_t i = 0; i < counts.size(); ++i) {
      absl::StatusOr<RematPlan>& plan = trials[i].plan;
      if (!plan.ok()) {
        if (why_.ok() || absl::IsInternal(plan.status())) why_ = plan.status();
        continue;
      }
      const auto [same, added] = last_.try_emplace(counts[i], *plan);
      if (!added && plan->outcome.time < same->second.outcome.time) same->second = *plan;
      if (!best_ || plan->outcome.time < best_->plan.outcome.time)
        best_ = {*std::move(plan), std::move(trials[i].graph), counts[i]};
    }
  }
  // Those of the last call that have plans go on, or the best one twice, for the rest of the time.
  void GoOn() {
    std::vector<size_t> counts;
    for (const auto& [count, plan] : last_) counts.push_back(count);
    counts.resize(kAtOnce, best_->host_slices);
    Run(counts, left());
  }
  const std::optional<PlanWithState>& best() const { return best_; }
  int64_t left() const {
    const int64_t spent = std::chrono::nanoseconds(steady_clock::now() - begin_).count();
    return std::max<int64_t>(0, options_.time_limit_ns - spent);
  }
  absl::StatusOr<PlanWithState> Answer() {
    if (absl::IsInternal(why_) || !best_) return why_;
    if (rounds_ > 1) RaiseLeastTime(best_->graph, options_, &best_->plan);  // in whole: trials had less time
    best_->plan.seconds = std::chrono::duration<double>(steady_clock::now() - begin_).count();
    return *std::move(best_);
  }

 private:
  Nanoseconds LeastTimeOf(size_t count) const {
    constexpr int kPoints = 4;
    constexpr int64_t kShareOfEach = 100;
    const Graph away = WithAway(graph_, slices_, count);
    const absl::StatusOr<TimeBound> bound = LeastTime(away, ValuesOf(away), options_.budget,
                                                      {.keeps_order = true,
                                                       .swap = true,
                                                       .machine = options_.machine,
                                                       .points = kPoints,
                                                       .time_limit_ns = options_.time_limit_ns / kShareOfEach});
    return bound.ok() ? bound->time : INT64_MAX;
  }

  const Graph& graph_;
  const Slices& slices_;
  const PlanOptions& options_;
  const RunTasks& run_all_;
  const steady_clock::time_point begin_;
  std::optional<PlanWithState> best_;
  std::map<size_t, RematPlan> last_;  // plans of the last call of Run, by part
  absl::Status why_;                  // of the first part without a plan
  int rounds_ = 0;                    // calls of Run
};

}  // namespace

void RunInTurn(const std::vector<std::function<void()>>& tasks) {
  for (const std::function<void()>& task : tasks) task();
}

absl::StatusOr<PlanWithState> MakePlanWithState(const Graph& graph, const Slices& slices, StatePlaces places,
                                                const PlanOptions& options, const RunTasks& run_all) {
  Trials trials(graph, slices, options, run_all);
  Graph all = graph;
  const bool may =
      options.swap && options.budget > 0 && Searches(options.algorithm) && SendStateAway(slices, slices.size(), &all);
  if (!may || places == StatePlaces::kDevice) {
    trials.Run({0}, options.time_limit_ns);
    return trials.Answer();
  }
  const size_t most = slices.size(), fewest = places == StatePlaces::kHost ? most : trials.Fewest();
  if (fewest == most) {
    trials.Run({most}, options.time_limit_ns);
    return trials.Answer();
  }
  const std::vector<Part> parts = trials.ByBound(fewest);
  for (size_t next = 0; next < std::min(parts.size(), kTrials) && !trials.best();) {
    std::vector<size_t> counts;
    const Part& first = parts[next];
    for (; next < parts.size() && counts.size() < kAtOnce && parts[next].IsNear(first); ++next)
      counts.push_back(parts[next].count);
    counts.resize(kAtOnce, first.count);  // with another seed
    trials.Run(counts, options.time_limit_ns / kShare);
  }
  if (trials.best()) {
    trials.GoOn();
  } else {  // the part with the most room, which must have its time
    trials.Run({most}, std::max(trials.left(), options.time_limit_ns / kShare));
  }
  return trials.Answer();
}

}  // namespace hotpack::remat
