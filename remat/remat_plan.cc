#include "remat/remat_plan.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "packer/block_unit.h"
#include "packer/pack.h"
#include "remat/core/load.h"
#include "remat/core/schedule_builder.h"
#include "remat/core/verifier.h"
#include "remat/exact/all_plans.h"
#include "remat/exact/bounds.h"
#include "remat/planners.h"
#include "remat/search/decisions_of.h"
#include "remat/search/polish.h"
#include "remat/search/search.h"

namespace hotpack::remat {
namespace {

using std::chrono::steady_clock;

constexpr int64_t kShareOfOthers = 40;  // each other planner of `auto` that knows a time limit gets one such part
// One such part of the time polishes what the search has found. Of few operators it tries much in that time.
constexpr int64_t kShareToPolish = 20, kShareToPolishFew = 4;
constexpr size_t kFew = 300;
constexpr int64_t kShareForAll = 4;  // one such part of the time visits all plans, of small graphs
constexpr int64_t kMaxPackNs = 300'000'000, kMinPackNs = 20'000'000;
constexpr int64_t kQuickPackNs = 3'000'000, kLooks = 50;
constexpr int64_t kLastPackNs = 2'000'000'000;  // if no plan's arena has fitted by then

struct Packed {
  Instance instance;
  Placement placement;
};

// Storages as large as their blocks: what is live at once is then what the arena has to hold.
Graph InArena(Graph graph) {
  constexpr Bytes kGrain = kBlockUnit;  // of ToInstance()
  for (Storage& storage : graph.storages) storage.bytes = RoundUp(storage.bytes, kGrain);
  for (Operator& op : graph.operators) op.workspace = RoundUp(op.workspace, kGrain);
  return graph;
}

// A schedule that fits by what is live at once; whether its arena does is checked when its turn comes.
struct Candidate {
  const char* algorithm;
  Schedule schedule;
  Outcome outcome;
  std::optional<Packed> packed;
  std::optional<Decisions> choice;
};

class Planner {
 public:
  Planner(const Graph& graph, const PlanOptions& options)
      : graph_(graph),
        options_(options),
        values_(ValuesOf(graph)),
        in_arena_(InArena(graph)),
        search_(in_arena_, values_, options.machine) {}

  // `from`: plans of the search for other budgets.
  absl::StatusOr<RematPlan> Run(Bytes budget, const std::vector<const Decisions*>& from) {
    begin_ = steady_clock::now();
    candidates_.clear();
    least_ = INT64_MAX;
    proved_ = 0;
    budget_ = budget > 0 ? budget : INT64_MAX;
    const bool away = HasStateAway();  // only the search knows contents that begin on the host
    if (!away) Add("program", Baseline(graph_));
    if (const Bytes least = Least(); budget_ < least) {
      return absl::ResourceExhaustedError(
          absl::StrCat("a budget of ", budget_, " bytes: every plan needs at least ", least, WhatNeeds(least)));
    }
    if (!away)
      Add("program", BuildSchedule(graph_, values_, std::vector<GapAction>(values_.gaps.size(), GapAction::kKeep),
                                   options_.machine)
                         .schedule);
    if (budget <= 0) return Fastest();  // the unmodified step
    const bool searches = Runs(TraitsOf(RematAlgorithm::kSearch)), at_last = searches && IsLarge();
    if (!at_last) AddPlanners();
    if (searches && !AddFastestOfAll()) {  // it gets the rest of the time
      const bool has_time = HasTimeForOthers();
      if (has_time) AddOthers();
      AddSearch(from);
      if (!has_time && FastestThatFits() == candidates_.end()) AddOthers();
      if (FastestThatFits() == candidates_.end()) AddCopying();
      AddPolished();
    }
    if (at_last && FastestThatFits() == candidates_.end()) AddPlanners();
    return Fastest();
  }

  // Sets the plan's times that do not depend on its schedule: those of the program, and the bound at `budget`.
  void SetBound(Bytes budget, RematPlan* answer) const {
    answer->lower_bound_time = answer->baseline_time = TotalCost(graph_);
    if (answer->outcome.time <= answer->baseline_time) return;
    const absl::StatusOr<TimeBound> bound = LeastTime(graph_, values_, budget, Bounds());
    if (bound.ok()) answer->lower_bound_time = std::max(answer->lower_bound_time, bound->time);
  }

 private:
  // Some planners always copy to the host, whatever `options_.swap` says.
  bool Swaps() const {
    return options_.swap || (options_.algorithm != RematAlgorithm::kAuto && TraitsOf(options_.algorithm).copies);
  }
  Bytes Least() {
    if (least_memory_ < 0) {
      least_memory_ = LeastMemory(graph_, Swaps());
      if (!Swaps()) least_memory_ = std::max(least_memory_, LeastBytes(graph_, values_, Bounds()));
    }
    return least_memory_;
  }
  // What makes the least memory of all plans of a recorded step. Empty: a cut does, not one moment alone.
  std::string WhatNeeds(Bytes least) const {
    if (graph_.released_after.empty()) return "";  // not of a recorded step
    const LeastMoment moment = LeastMemoryAt(graph_, Swaps());
    return moment.bytes < least ? "" : absl::StrCat(" (", TextOf(graph_, moment), ")");
  }
  BoundOptions Bounds() const {
    return {.keeps_order = !graph_.released_after.empty(),  // a recorded program is carried out in its order
            .swap = Swaps(),
            .machine = options_.machine,
            .time_limit_ns = std::min<int64_t>(1'000'000'000, options_.time_limit_ns / 4)};
  }

  Candidate* Add(const char* algorithm, Schedule schedule) {
    ReleaseHostCopies(graph_, &schedule);
    absl::StatusOr<Outcome> outcome = Simulate(graph_, schedule, options_.machine);
    if (!outcome.ok()) return nullptr;   // the host has no room
    if (outcome->live_peak > budget_) {  // and so is its arena
      least_ = std::min(least_, outcome->live_peak);
      return nullptr;
    }
    candidates_.push_back({algorithm, std::move(schedule), *std::move(outcome), {}, {}});
    return &candidates_.back();
  }
  static const PlannerTraits& TraitsOf(RematAlgorithm algorithm) {
    return kPlanners[static_cast<size_t>(algorithm) - 1];
  }
  bool Runs(const PlannerTraits& planner) const {
    if (options_.algorithm != RematAlgorithm::kAuto) return options_.algorithm == planner.algorithm;
    return planner.in_auto == InAuto::kAlways || (planner.in_auto == InAuto::kWithCopies && options_.swap);
  }
  // All that know what the graph has, and that the options ask for, except the search.
  void AddPlanners() {
    for (const PlannerTraits& planner : kPlanners) {
      if (!HasStateAway() && FunctionOf(planner.algorithm) != nullptr && Runs(planner))
        AddPlanner(planner, planner.name);
    }
  }
  // A planner bounds the live bytes. Where its arena exceeds the budget, it runs again with less.
  void AddPlanner(const PlannerTraits& planner, const char* name) {
    // Most of the time is the search's, where it runs.
    const int64_t limit_ns = options_.time_limit_ns / (options_.algorithm == planner.algorithm ? 1 : kShareOfOthers);
    const PlannerInput input = {graph_, values_, options_.machine, options_.seed, limit_ns};
    for (const double part : {1.0, 0.99, 0.97, 0.94}) {
      absl::StatusOr<Schedule> schedule =
          FunctionOf(planner.algorithm)(input, static_cast<Bytes>(part * static_cast<double>(budget_)));
      if (!schedule.ok()) return;
      const Candidate* candidate = Add(name, *std::move(schedule));
      if (!planner.by_budget || (candidate != nullptr && Pack(&candidates_.back()) <= budget_)) return;
    }
  }
  // The search's time limit: the rest that the other planners left, or a small minimum.
  struct SearchTime {
    int64_t limit_ns;
    steady_clock::time_point begin = steady_clock::now();
    int64_t spent() const { return (steady_clock::now() - begin).count(); }
    int64_t left() const { return std::max(limit_ns / 50, limit_ns - spent()); }
  };
  void AddSearch(std::vector<const Decisions*> from) {
    constexpr int64_t kMin = 1'000'000;
    const bool goes_on = !from.empty();
    const std::vector<Decisions> others = OthersDecisions();
    for (const Decisions& other : others) from.push_back(&other);
    const SearchTime time = {std::max(kMin, TimeLeft() - TimeToPolish())};
    if (!options_.swap) return AddSearchWithin(from, time);
    constexpr size_t kMax = 2000;  // operators: of larger graphs the time is better spent without looking at arenas
    if (graph_.operators.size() > kMax) return AddSearchWithin(from, time);
    const std::optional<Found> found = SearchWithCopies(from, goes_on, {time.limit_ns / 2});
    if (found) {
      if (Candidate* candidate = Add("search", found->schedule); candidate != nullptr)
        candidate->choice = found->choice;
      if (found->time <= TotalCost(graph_)) return;
      from.push_back(&found->choice);
    }
    AddSearchWithin(from, {time.left()});
  }
  // Planners whose plans the search begins with, too, as far as it can say them value by value. Their plans stand next
  // to its own. They know no time limit: where they would take much of it, they only plan if the search has found none.
  static constexpr RematAlgorithm kOthers[] = {RematAlgorithm::kChen, RematAlgorithm::kKnapsack};

  // Of larger graphs they take too long.
  bool IsLarge() const {
    constexpr size_t kMost = 3000;  // operators
    return graph_.operators.size() > kMost;
  }
  bool HasTimeForOthers() const {
    constexpr int64_t kNsASquare = 500, kShare = 3;  // measured, of the operators' square; one part of the time limit
    const auto operators = static_cast<int64_t>(graph_.operators.size());
    return kNsASquare * operators * operators <= options_.time_limit_ns / kShare;
  }
  void AddOthers() {
    if (options_.algorithm == RematAlgorithm::kAuto || HasStateAway() || IsLarge()) return;
    for (const RematAlgorithm other : kOthers) AddPlanner(TraitsOf(other), "search");
  }
  // Planners that copy whatever they can have a plan where others have none.
  void AddCopying() {
    if (options_.algorithm == RematAlgorithm::kAuto || !options_.swap || HasStateAway()) return;
    for (const RematAlgorithm other : {RematAlgorithm::kSuperNeurons, RematAlgorithm::kTflms})
      AddPlanner(TraitsOf(other), "search");
  }
  std::vector<Decisions> OthersDecisions() const {
    std::vector<Decisions> found;
    for (const Candidate& each : candidates_) {
      const bool is_one = std::any_of(std::begin(kOthers), std::end(kOthers), [&](RematAlgorithm other) {
        return std::string_view(each.algorithm) == TraitsOf(other).name;
      });
      if (is_one || std::string_view(each.algorithm) == "search")
        found.push_back(DecisionsOf(graph_, values_, each.schedule));
    }
    return found;
  }
  // Of small graphs: the fastest of all plans. Returns whether its arena fits, so that no other need be looked for.
  bool AddFastestOfAll() {
    constexpr int64_t kMostStates = 200'000;  // some 100 MB
    if (!MaySearchAllPlans(graph_)) return false;
    AllPlansAnswer all = SearchAllPlans(graph_, {.budget = budget_,
                                                 .machine = options_.machine,
                                                 .swap = options_.swap,
                                                 .most_states = kMostStates,
                                                 .time_limit_ns = options_.time_limit_ns / kShareForAll});
    if (!all.schedule) return false;
    if (all.complete && !graph_.released_after.empty()) proved_ = all.time;
    const Candidate* candidate = Add("search", *std::move(all.schedule));
    return all.complete && candidate != nullptr && Pack(&candidates_.back()) <= budget_;
  }
  bool HasStateAway() const {
    return std::any_of(graph_.storages.begin(), graph_.storages.end(), [](const Storage& s) { return s.away; });
  }
  int64_t TimeLeft() const {
    return options_.time_limit_ns - static_cast<int64_t>((steady_clock::now() - begin_).count());
  }
  int64_t TimeToPolish() const {
    return options_.time_limit_ns / (graph_.operators.size() <= kFew ? kShareToPolishFew : kShareToPolish);
  }
  // The fastest plan so far, action by action.
  void AddPolished() {
    const auto fastest = FastestThatFits();
    if (fastest == candidates_.end() || fastest->outcome.time <= TotalCost(graph_)) return;
    Schedule schedule = fastest->schedule;
    std::optional<Decisions> choice = fastest->choice;
    const PolishOptions options = {
        .budget = budget_,
        .machine = options_.machine,
        .swap = options_.swap,
        .seed = options_.seed,
        .time_limit_ns = std::max(TimeToPolish() / 2, TimeLeft()),
        .passes = [this](const Schedule& polished) { return HeightOf(polished, kQuickPackNs) <= budget_; }};
    if (!Polish(in_arena_, options, &schedule)) return;
    if (Candidate* candidate = Add("search", std::move(schedule)); candidate != nullptr)
      candidate->choice = std::move(choice);
  }
  // Copies leave holes in the arena, so what fits by what is live at once may not by its arena: the search looks at
  // both, with all that may be live at once and with less, down to what every plan needs; and then goes on where the
  // best was found. `goes_on`: it begins with the given plans alone. Nothing: no arena fits.
  std::optional<Found> SearchWithCopies(std::vector<const Decisions*> from, bool goes_on, const SearchTime& time) {
    constexpr int kLess[] = {0, 30, 60, 120, 250};  // thousandths of the budget
    constexpr int kLooking = std::size(kLess), kImproving = 3;
    const Bytes less = std::max<Bytes>(0, budget_ - Least());
    const size_t given = from.size();
    std::optional<Found> best;
    std::optional<Decisions> before;  // the plan of the search before, whether its arena fits or not
    Bytes best_live = 0;
    bool hindered = false;  // what fits by what is live is much faster
    SearchOptions search = {.swap = true, .seed = options_.seed};
    search.restart = !goes_on;
    search.passes = [this](const Schedule& schedule) { return HeightOf(schedule, kQuickPackNs) <= budget_; };
    // What a search has found at last is worth more of the packer's time.
    const int64_t last_look_ns = std::clamp(options_.time_limit_ns / kLooks, kQuickPackNs, kMaxPackNs);
    const auto run = [&](Bytes live, int64_t limit_ns) {
      search.budget = live;
      search.time_limit_ns = std::max(limit_ns, time.limit_ns / 50);
      search.from = from;
      if (before) search.from.push_back(&*before);
      Found found = search_.Run(search);
      ++search.seed;
      hindered = found.fits &&
                 (!found.passes || 2 * (found.time - TotalCost(graph_)) > 3 * (found.least_time - TotalCost(graph_)));
      if (found.fits) before = found.choice;
      if (!found.fits || (best && found.time >= best->time) ||
          (!found.passes && HeightOf(found.schedule, last_look_ns) > budget_))
        return;
      best = std::move(found);
      best_live = live;
      from.resize(given);
      from.push_back(&best->choice);
    };
    for (int i = 0; i < kLooking && !(best && best->time <= TotalCost(graph_)); ++i) {
      const Bytes live = budget_ - std::min(less, budget_ / 1000 * kLess[i]);
      const int64_t share = (time.limit_ns * 6 / 10 - time.spent()) / (kLooking - i);
      if (live >= best_live || hindered) run(live, i == 0 ? 2 * share : share);
      search.restart = false;
    }
    for (int i = 0; i < kImproving && best && best->time > TotalCost(graph_); ++i) {
      run(i % 2 == 0 ? best_live : best_live + (budget_ - best_live) / 2, time.left() / (kImproving - i));
    }
    return best;
  }
  // Returns what may be live next: more than what fitted and less than what did not, if that is worth it.
  Bytes Halfway(Bytes within, Bytes above) const {
    constexpr Bytes kWorth = 200;  // parts of the budget
    return above - within > budget_ / kWorth ? within + (above - within) / 2 : within;
  }

  // Several rounds: where the arena does not fit, with less that may be live at once, as much as it was above; between
  // that and what did not fit where there is no plan for so little.
  void AddSearchWithin(const std::vector<const Decisions*>& from, const SearchTime& time) {
    constexpr int kMaxRounds = 24;
    constexpr int kImproving = 3;  // rounds that improve a plan that fits, the last with half of the time
    Bytes live = budget_;
    Bytes none = Least() - 1,
          above = budget_ + 1;  // no plan was found with so little live, and the arena of one with so much did not fit
    Bytes within = 0;           // the most that may be live of a plan whose arena fitted
    std::optional<Decisions> choice;
    int improving = 0;
    for (int round = 0; round < kMaxRounds && improving <= kImproving; ++round) {
      const int64_t left = time.left();
      const int64_t share = improving == kImproving ? left : left / (improving > 0 && round < 4 ? 4 : 2);
      SearchOptions search = {.budget = live,
                              .swap = options_.swap,
                              .seed = options_.seed + static_cast<uint64_t>(round),
                              .time_limit_ns = share};
      search.restart = improving == 0 && !(options_.swap && choice);
      search.from = from;
      if (choice) search.from = {&*choice};
      Found found = search_.Run(search);
      if (!found.fits) {
        if (!choice || improving > 0) return;
        none = live;
      } else {
        choice = std::move(found.choice);
        Candidate* candidate = Add("search", std::move(found.schedule));
        if (candidate == nullptr) return;
        candidate->choice = choice;
        const Bytes height = Pack(candidate);
        if (height <= budget_) {
          if (improving == kImproving) return;
          ++improving;
          if (found.steps == 0) return;  // nothing to improve
          within = std::max(within, live);
          live = Halfway(within, above);
          continue;
        }
        above = std::min(above, found.peak);
        if (within > 0) {
          live = Halfway(within, above);
          continue;
        }
        live = above - std::clamp<Bytes>(height - budget_, budget_ / 1000, options_.swap ? budget_ / 16 : budget_);
      }
      if (live <= none) live = none + (above - none) / 2;
      if (live <= none || time.spent() > 2 * time.limit_ns) return;
    }
  }

  // The arena's height, as far as a packer says at once.
  Bytes HeightOf(const Schedule& schedule, int64_t limit_ns) const {
    const absl::StatusOr<Outcome> outcome = Simulate(graph_, schedule, options_.machine);
    if (!outcome.ok() || outcome->live_peak > budget_) return INT64_MAX;
    const PackResult result =
        hotpack::Pack(ToInstance(outcome->residencies), {.time_limit_ns = limit_ns, .target_height = budget_});
    return result.status == PackStatus::kOk ? result.placement.height : INT64_MAX;
  }

  // The arena's height. `last`: a plan that did not fit in the usual time gets more of it.
  Bytes Pack(Candidate* candidate, bool last = false) {
    if (last && candidate->packed && candidate->packed->placement.height > budget_) candidate->packed.reset();
    if (!candidate->packed) {
      const int64_t limit = last ? kLastPackNs : std::clamp(options_.time_limit_ns / 20, kMinPackNs, kMaxPackNs);
      candidate->packed.emplace();
      candidate->packed->instance = ToInstance(candidate->outcome.residencies);
      const Bytes target_height = budget_ == INT64_MAX ? 0 : budget_;
      PackResult result =
          hotpack::Pack(candidate->packed->instance, {.time_limit_ns = limit, .target_height = target_height});
      if (result.status != PackStatus::kOk) return INT64_MAX;
      candidate->packed->placement = std::move(result.placement);
    }
    const Bytes height = candidate->packed->placement.height;
    least_ = std::min(least_, height);
    return height;
  }

  using Candidates = std::vector<Candidate>;

  // Sorts the candidates, and returns the first one whose arena fits. `end`: none does.
  Candidates::iterator FastestThatFits() {
    std::stable_sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
      return std::tuple(a.outcome.time, a.outcome.copies, a.outcome.live_peak) <
             std::tuple(b.outcome.time, b.outcome.copies, b.outcome.live_peak);
    });
    return std::find_if(candidates_.begin(), candidates_.end(),
                        [this](Candidate& each) { return Pack(&each) <= budget_; });
  }

  absl::StatusOr<RematPlan> Fastest() {
    constexpr std::ptrdiff_t kMaxAgain = 4;
    auto found = FastestThatFits();
    const auto end = candidates_.end(), some = candidates_.begin() + std::min(kMaxAgain, end - candidates_.begin());
    if (found == end) {
      found = std::find_if(candidates_.begin(), some, [this](Candidate& each) { return Pack(&each, true) <= budget_; });
      if (found == some) found = end;
    }
    if (found == end) {
      const std::string needs = least_ == INT64_MAX ? "" : absl::StrCat("; the least found needs ", least_);
      return absl::ResourceExhaustedError(absl::StrCat("no plan found for a budget of ", budget_, " bytes", needs));
    }
    return Answer(&*found);
  }

  // The packer stopped where the arena was within the budget. Gives it the usual time to make it smaller.
  void PackAgain(Candidate* candidate) {
    if (budget_ == INT64_MAX || candidate->packed->placement.height <= candidate->outcome.live_peak) return;
    const int64_t limit = std::clamp(options_.time_limit_ns / 20, kMinPackNs, kMaxPackNs);
    PackResult result = hotpack::Pack(candidate->packed->instance, {.time_limit_ns = limit});
    if (result.status == PackStatus::kOk && result.placement.height < candidate->packed->placement.height)
      candidate->packed->placement = std::move(result.placement);
  }

  absl::StatusOr<RematPlan> Answer(Candidate* candidate) {
    if (std::string fault = Verify(graph_, candidate->schedule); !fault.empty()) {
      return absl::InternalError(
          absl::StrCat("the plan of ", candidate->algorithm, " is wrong, please report this: ", fault));
    }
    RematPlan answer;
    answer.algorithm = candidate->algorithm;
    PackAgain(candidate);
    answer.schedule = std::move(candidate->schedule);
    answer.outcome = std::move(candidate->outcome);
    answer.instance = std::move(candidate->packed->instance);
    answer.placement = std::move(candidate->packed->placement);
    answer.choice = std::move(candidate->choice);
    answer.arena = answer.placement.height;
    answer.recomputed = answer.outcome.runs_again;
    answer.swapped = std::count_if(answer.schedule.actions.begin(), answer.schedule.actions.end(),
                                   [](const Action& action) { return action.kind == ActionKind::kOffload; });
    SetBound(budget_, &answer);
    answer.lower_bound_time = std::max(answer.lower_bound_time, proved_);
    answer.seconds = std::chrono::duration<double>(steady_clock::now() - begin_).count();
    return answer;
  }

  const Graph& graph_;
  const PlanOptions& options_;
  const Values values_;
  const Graph in_arena_;
  Search search_;
  steady_clock::time_point begin_;
  Bytes budget_ = 0, least_ = 0, least_memory_ = -1;
  Nanoseconds proved_ = 0;  // no plan in the program's order takes less
  std::vector<Candidate> candidates_;
};

}  // namespace

std::optional<RematAlgorithm> PlanAlgorithmFromName(std::string_view name) {
  if (name == "auto") return RematAlgorithm::kAuto;
  for (const PlannerTraits& planner : kPlanners) {
    if (name == planner.name) return planner.algorithm;
  }
  return std::nullopt;
}

absl::StatusOr<RematPlan> MakeRematPlan(const Graph& graph, const PlanOptions& options, const Decisions* from) {
  std::vector<const Decisions*> plans;
  if (from != nullptr) plans.push_back(from);
  return Planner(graph, options).Run(options.budget, plans);
}

void RaiseLeastTime(const Graph& graph, const PlanOptions& options, RematPlan* plan) {
  const Nanoseconds known = plan->lower_bound_time;
  Planner(graph, options).SetBound(options.budget, plan);
  plan->lower_bound_time = std::max(plan->lower_bound_time, known);
}

std::vector<absl::StatusOr<RematPlan>> MakePlans(const Graph& graph, const PlanOptions& options,
                                                 const std::vector<Bytes>& budgets) {
  Planner planner(graph, options);
  std::vector<size_t> order(budgets.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return budgets[a] > budgets[b]; });
  std::vector<absl::StatusOr<RematPlan>> answers(budgets.size(), absl::UnknownError("not planned"));
  // From the largest, each beginning with what the one before has found ...
  const RematPlan* larger = nullptr;
  for (size_t at : order) {
    std::vector<const Decisions*> from;
    if (larger != nullptr && larger->choice) from.push_back(&*larger->choice);
    answers[at] = planner.Run(budgets[at], from);
    if (answers[at].ok()) larger = &*answers[at];
  }
  // ... and back: what fits into less fits.
  std::reverse(order.begin(), order.end());
  const RematPlan* smaller = nullptr;
  for (size_t at : order) {
    absl::StatusOr<RematPlan>& answer = answers[at];
    if (smaller != nullptr && (!answer.ok() || answer->outcome.time > smaller->outcome.time)) {
      const Nanoseconds known = answer.ok() ? answer->lower_bound_time : 0;
      answer = *smaller;
      planner.SetBound(budgets[at], &*answer);
      answer->lower_bound_time = std::max(answer->lower_bound_time, known);
    }
    if (answer.ok()) smaller = &*answer;
  }
  return answers;
}

}  // namespace hotpack::remat
