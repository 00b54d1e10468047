#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>

#include "remat/search/search_state.h"

namespace hotpack::remat {
namespace {

// The operators up to `at`, divided into stretches.
class Stretches {
 public:
  Stretches(const Graph& graph, const Values& values, OperatorId at)
      : values_(values), end_(at + 1), last_(values.values.size(), -1), over_(At(end_) + 1), made_(At(end_) + 1) {
    for (size_t v = 0; v < values.values.size(); ++v) {
      const Value& of = values.values[v];
      if (of.maker < 0 || of.maker >= end_) continue;
      const Bytes bytes = graph.storages[At(of.storage)].bytes;
      made_[At(of.maker) + 1] += bytes;
      const auto behind = std::lower_bound(of.uses.begin(), of.uses.end(), end_);
      if (behind == of.uses.begin()) continue;
      last_[v] = *(behind - 1);
      over_[At(of.maker) + 1] += bytes;
      over_[At(last_[v]) + 1] -= bytes;
    }
    for (size_t i = 1; i < over_.size(); ++i) over_[i] += over_[i - 1], made_[i] += made_[i - 1];
  }

  // Returns the values that cross from one stretch to the next. `with_last` adds the wanted values of the last stretch,
  // which would be recomputed at once. Each stretch begins where the fewest bytes cross, within a quarter of a stretch
  // around the place with its share of the bytes.
  std::vector<ValueId> Crossing(int count, double skew, bool with_last) const {
    std::vector<OperatorId> cuts;
    for (int i = 1; i < count; ++i) {
      const auto at = [&](double part) {
        const double bytes = static_cast<double>(made_.back()) * (1 - std::pow(1 - part / count, skew));
        return std::lower_bound(made_.begin(), made_.end(), static_cast<Bytes>(bytes)) - made_.begin();
      };
      const auto from = std::clamp<std::ptrdiff_t>(at(i - 0.25), 1, end_),
                 to = std::clamp<std::ptrdiff_t>(at(i + 0.25), from, end_);
      cuts.push_back(
          static_cast<OperatorId>(std::min_element(over_.begin() + from, over_.begin() + to + 1) - over_.begin()));
    }
    std::vector<ValueId> crossing;
    for (size_t v = 0; v < last_.size(); ++v) {
      const Value& value = values_.values[v];
      const auto cut = std::upper_bound(cuts.begin(), cuts.end(), value.maker);
      const bool goes_over = last_[v] >= 0 && cut != cuts.end() && *cut <= last_[v];
      const bool of_the_last =
          with_last && cut == cuts.end() && value.maker < end_ && !value.uses.empty() && value.uses.back() >= end_;
      if (goes_over || of_the_last) crossing.push_back(static_cast<ValueId>(v));
    }
    return crossing;
  }

 private:
  const Values& values_;
  const OperatorId end_;
  std::vector<OperatorId> last_;  // by value: last use before `end_`; -1: none
  // By operator: bytes that cross the place before it, and bytes made before it.
  std::vector<Bytes> over_, made_;
};

}  // namespace

void Search::State::BeginByCuts() {
  if (can_go_.empty()) return;
  const auto end = static_cast<OperatorId>(graph_.operators.size());
  const auto is_forward = [](const Operator& op) { return op.phase == Phase::kForward; };
  const auto passes = static_cast<OperatorId>(
      std::find_if_not(graph_.operators.begin(), graph_.operators.end(), is_forward) - graph_.operators.begin());
  // Cuts where the backward pass begins, and where most bytes are wanted behind.
  std::vector<Bytes> wanted(At(end) + 1);
  for (const Gap& gap : values_.gaps) {
    if (gap.after < 0) continue;
    const Bytes bytes = graph_.storages[At(values_.values[At(gap.value)].storage)].bytes;
    wanted[At(gap.after)] += bytes;
    wanted[At(gap.before)] -= bytes;
  }
  for (size_t i = 1; i < wanted.size(); ++i) wanted[i] += wanted[i - 1];
  const auto most = static_cast<OperatorId>(std::max_element(wanted.begin(), wanted.end() - 1) - wanted.begin());
  const bool both = passes > 0 && passes < end;
  if (both) BeginByCut(passes - 1);
  if (!both || (!best_.fits && std::abs(most - (passes - 1)) > end / 16)) BeginByCut(most);
}

void Search::State::BeginByCut(OperatorId at) {
  constexpr double kShare = 0.3;  // of the time
  const double until = Elapsed() + kShare;
  const Stretches stretches(graph_, values_, at);
  const PointCut plain(graph_, values_, RunOrder(graph_, values_, true), at,
                       static_cast<OperatorId>(graph_.operators.size()));
  std::map<CutOf, CutPlan> plans;
  const auto add_one = [&](const CutOf& of) {
    if (plans.contains(of) || (Elapsed() > until && !plans.empty())) return true;
    PointCut cut = plain;
    const std::vector<ValueId> crossing = stretches.Crossing(of.count, of.skew, of.with_last);
    cut.Hold(crossing);
    return (plans[of] = BestOf(&cut, crossing, at)).score.first == 0;
  };
  const auto add = [&](int count, double skew) {
    if (count == 1) add_one({1, 1, false});
    if (count > 1 && !add_one({count, skew, true})) add_one({count, skew, false});
  };
  const auto best = [&] {
    return std::min_element(plans.begin(), plans.end(),
                            [](const auto& a, const auto& b) { return a.second.score < b.second.score; });
  };
  const auto add_all = [&](const std::vector<int>& counts) {
    for (const int count : counts) add(count, 1);
  };
  // Tries distant counts, then the neighbors of the best, then the rest, and the neighbors of the best again.
  add(1, 1);
  add(last_cut_.count, last_cut_.skew);
  add_all({16, 64, 4, 32, 8, 128});
  for (const bool rest : {true, false}) {
    for (const double skew : {1.4, 2.0}) add(best()->first.count, skew);
    for (const int by : {4, 8, 16}) {  // parts of the count
      const auto [count, skew, with_last] = best()->first;
      add(count - std::max(count / by, 1), skew);
      add(count + std::max(count / by, 1), skew);
    }
    if (rest) add_all({12, 6, 24, 2, 48, 7, 5, 10, 3, 20, 96, 192});
  }
  last_cut_ = best()->first;
  if (const auto whole = plans.find({1, 1, false}); whole != plans.end()) BeginByBranches(plain, {}, at, whole->second);
  // Begins with the best that fit, and with faster ones that nearly fit: repaired they may be better.
  constexpr int kMaxFitting = 4, kMaxMended = 3, kMaxInNeed = 8;
  const auto first = best()->second.score;
  const Nanoseconds to_beat = first.first == 0 ? first.second : INT64_MAX;
  for (int fitting = 0, mended = 0; !plans.empty();) {
    const auto plan = best();
    const auto [over, time] = plan->second.score;
    if (over > 0 && time < to_beat) {
      if (mended == kMaxMended && best_.fits) break;
      if (mended++ == kMaxInNeed) break;
      Begin(plan->second.fits, {});
    } else if (over == 0 && fitting++ < kMaxFitting) {
      if (plan->first.count > 1)
        BeginByBranches(plain, stretches.Crossing(plan->first.count, plan->first.skew, plan->first.with_last), at,
                        plan->second);
      Begin(plan->second.fits, {});
      Begin(plan->second.above, {});
    }
    plans.erase(plan);
  }
}

void Search::State::BeginByBranches(const PointCut& plain, const std::vector<ValueId>& crossing, OperatorId at,
                                    const CutPlan& plan) {
  if (plan.score.first > 0) return;
  // Operators. In larger graphs other plans to begin with need the time more.
  constexpr size_t kSmall = 1000;
  const double until = Elapsed() + (graph_.operators.size() > kSmall ? 0.02 : crossing.empty() ? 0.2 : 0.05);
  constexpr size_t kMaxWork = 300'000;  // branches times operators
  const bool exchanges = graph_.operators.size() <= 3 * kSmall;
  FitOptions options;
  options.budget = options_->budget;
  options.may_evict = false;
  PointCut cut = plain;
  cut.Hold(crossing);
  const PointCut::Corner fastest = cut.Fastest();
  Nanoseconds least = plan.score.second;
  Decisions found;
  // The best choice for the room may exceed the budget elsewhere. Then the room shrinks by the excess. If it exceeds
  // the budget nowhere, the room grows a little.
  constexpr Bytes kSteps = 64;
  bool fits = false;
  constexpr int kMaxRooms = 16;
  Bytes room = plan.room;
  for (int i = 0; i < kMaxRooms && room > 0 && Elapsed() < until; ++i) {
    Nanoseconds best = INT64_MAX;  // of the choices visited
    Bytes over = 0, below = 0;
    const auto visit = [&](const PointCut::Corner& corner) {
      if (corner.time >= best) return Elapsed() < until;
      best = corner.time;
      Decisions decisions = DecisionsOf(corner, crossing, at), done = decisions;
      const BudgetFit fitted = fitter_.Fit(options, &done);
      over = std::max<Bytes>(0, fitted.peak - options.budget);
      below = std::max<Bytes>(0, options.budget - fitted.peak);
      if (fitted.fits && fitted.time < least) {
        least = fitted.time;
        found = std::move(decisions);
      }
      return Elapsed() < until;
    };
    bool is_first = exchanges;
    cut.TimeWhole(room, static_cast<int>(kMaxWork / graph_.operators.size()), [&](const PointCut::Corner& corner) {
      if (is_first) {
        is_first = false;
        for (const PointCut::Corner& from : {corner, fastest}) {
          if (const std::optional<PointCut::Corner> other = cut.Exchanged(from, room)) visit(*other);
        }
      }
      return visit(corner);
    });
    if (best == INT64_MAX || (fits && over > 0)) break;
    fits = fits || over == 0;
    room += over > 0 ? -over : below + room / kSteps;
  }
  if (least < plan.score.second) Begin(found, {});
}

// Returns the corner of the hull that fits with the most bytes held, and its neighbor.
Search::State::CutPlan Search::State::BestOf(PointCut* cut, const std::vector<ValueId>& crossing, OperatorId at) {
  FitOptions options;
  options.budget = options_->budget;
  options.may_evict = false;
  CutPlan plan;
  const auto fits = [&](const PointCut::Corner& corner) {
    Decisions decisions = DecisionsOf(corner, crossing, at), done = decisions;
    const BudgetFit fitted = fitter_.Fit(options, &done);
    if (fitted.fits || plan.above.ways.empty()) {
      plan.score = {fitted.over, fitted.time};
      plan.room = corner.bytes + options.budget - fitted.peak;
    }
    (fitted.fits ? plan.fits : plan.above) = std::move(decisions);
    return fitted.fits;
  };
  PointCut::Corner above = cut->Fastest(), below = cut->Smallest();
  if (!fits(below)) {
    // Recomputation needs memory too, so a choice with more bytes held may fit. Tries any corner, the middle ones
    // first.
    const size_t most_looked = crossing.empty() ? 12 : 1;
    std::vector<std::pair<PointCut::Corner, PointCut::Corner>> between = {{above, below}};
    bool found = false;
    for (size_t i = 0; i < between.size() && i < most_looked && !found; ++i) {
      std::optional<PointCut::Corner> corner = cut->Between(between[i].first, between[i].second);
      if (!corner) continue;
      const Decisions least = plan.above;
      found = fits(*corner);
      if (found) {
        above = between[i].first;
        below = *std::move(corner);
        break;
      }
      plan.above = least;
      between.push_back({*corner, between[i].second});
      between.push_back({between[i].first, *std::move(corner)});
    }
    if (!found) {
      plan.fits = plan.above;
      return plan;
    }
  }
  plan.above = plan.fits;
  for (;;) {
    std::optional<PointCut::Corner> corner = cut->Between(above, below);
    if (!corner) return plan;
    (fits(*corner) ? below : above) = *std::move(corner);
  }
}

Decisions Search::State::DecisionsOf(const PointCut::Corner& corner, const std::vector<ValueId>& crossing,
                                     OperatorId at) {
  Decisions decisions = NothingGoes(values_);
  for (OperatorId op : corner.again) {
    for (ValueId output : values_.outputs[At(op)]) {
      const Value& of = values_.values[At(output)];
      for (GapId g = of.first_gap; g < of.first_gap + values_.GapsOf(output); ++g) {
        const Gap& gap = values_.gaps[At(g)];
        if (gap.after <= at && at < gap.before && fitter_.CanGo(g)) decisions.ways[At(g)] = GapAction::kRecompute;
      }
    }
  }
  for (const std::vector<ValueId>* held : {&corner.held, &crossing}) {
    for (ValueId value : *held) {
      const Value& of = values_.values[At(value)];
      if (of.left || of.maker < 0 || (!of.uses.empty() && of.uses.back() > at)) continue;
      decisions.tails[At(value)] =
          std::min<OperatorId>(of.overwritten - 1, static_cast<OperatorId>(graph_.operators.size()) - 1);
    }
  }
  FitOptions options;
  options.budget = options_->budget;
  options.may_evict = false;
  fitter_.Fit(options, &decisions);  // limits the tails to the time in which they help
  return decisions;
}

}  // namespace hotpack::remat
