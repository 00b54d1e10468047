#include <algorithm>
#include <cmath>

#include "remat/search/search_state.h"

namespace hotpack::remat {
void Search::State::Begin(const Decisions& asked, FitOptions options) {
  options.budget = options_->budget;
  constexpr int kMaxTimes = 100;  // in units of the program's time
  options.max_time = best_.fits ? 2 * best_.time : kMaxTimes * (total_ + 1);
  options.max_over = best_.fits ? 0 : now_.over;
  Decisions choice = asked;
  BudgetFit fitted = fitter_.Fit(options, &choice, &hold_);
  Remember(fitted, options, asked);
  if (fitted.evictions > 0 && fitted.over < INT64_MAX) {
    const Decisions done = choice;
    fitted = fitter_.Fit(options, &choice, &hold_);
    Remember(fitted, options, done);
  }
  // Holds values that are used up shortly before another value is recomputed from them.
  for (const size_t part : {32, 8, 2}) {
    if (fitted.over == INT64_MAX || fitter_.Missed().empty()) break;
    Decisions held = choice;
    HoldMissed(static_cast<OperatorId>(graph_.operators.size() / part), &held);
    const Decisions asked_again = held;
    const BudgetFit next = fitter_.Fit(options, &held, &hold_);
    if (std::pair(next.over, next.time) >= std::pair(fitted.over, fitted.time)) break;
    Remember(next, options, asked_again);
    fitted = next;
    choice = std::move(held);
  }
  Standing standing = {std::move(choice), fitted.over, fitted.time, options.fetching, fitted.copies};
  Standing& best = best_standing_[static_cast<size_t>(options.fetching)];
  if (standing.over == 0) {
    Nanoseconds& least = least_[static_cast<size_t>(options.fetching)];
    least = std::min(least, standing.time);
    if (standing.time < best.time) best = standing;
  }
  LookAt(standing);
  if (std::pair(standing.over, standing.time) < std::pair(now_.over, now_.time)) now_ = std::move(standing);
}

void Search::State::Restart() {
  if (options_->swap) {
    BeginByCutWithCopies();
    ForgetLeast();  // where cuts are good with one way to fetch, other plans may be with another
    BeginByCopyPrices();
    BeginBySwaps();
    BeginOneByOne();
    CopyLess(TimeSpent() + 0.1);
    if (best_.fits && Elapsed() > 0.4) return;
  }
  if (IsDone()) return;
  BeginByCuts();  // first, because with a plan known the others give up early
  const Decisions nothing = NothingGoes(values_);
  for (const double wait : {0.5, 1.5, 0.0, 1.0, 0.25, 0.75}) {
    Begin(nothing, {.wait = wait});
    if (Elapsed() > 0.7 && best_.fits) return;
  }
  for (const double wait : {0.0, 0.5, 1.0, 2.0}) Begin(nothing, {.wait = wait, .neighbors = false});
  BeginByThreshold();
  BeginByClasses();
}

bool Search::State::Crosses(GapId gap) const {
  const Gap& of = values_.gaps[At(gap)];
  if (of.after < 0 || At(of.before) >= graph_.operators.size()) return false;
  return graph_.operators[At(of.after)].phase == Phase::kForward &&
         graph_.operators[At(of.before)].phase != Phase::kForward;
}

void Search::State::BeginByClasses() {
  constexpr double kShare = 0.2;  // of the time
  const double until = Elapsed() + kShare;
  const size_t count = classes_.gaps.size();
  constexpr size_t kMax = 300;
  if (count == 0 || count > kMax || count * 2 > can_go_.size()) return;
  FitOptions options;
  options.budget = options_->budget;
  options.may_evict = false;
  Decisions choice = NothingGoes(values_);
  Decisions done = choice;
  BudgetFit now = fitter_.Fit(options, &done);
  std::vector<bool> gone(count);
  while (now.over > 0) {
    Decisions best;
    BudgetFit best_fitted;
    double best_score = 0;
    size_t best_class = 0;
    for (size_t c = 0; c < count; ++c) {
      if (gone[c]) continue;
      enum { kAlone, kWithSources, kToHost };
      for (const auto kind : {kAlone, kWithSources, kToHost}) {
        if (Elapsed() > until) return;
        if (kind == kToHost && !options_->swap) continue;
        Decisions next = choice;
        for (GapId gap : classes_.gaps[c])
          next.ways[At(gap)] = kind == kToHost ? GapAction::kOffload : GapAction::kRecompute;
        if (kind == kWithSources) {
          for (GapId gap : classes_.gaps[c]) HoldSources(gap, &next, Sources::kCostlier);
        }
        done = next;
        options.max_over = now.over;
        const BudgetFit fitted = fitter_.Fit(options, &done);
        if (fitted.over >= now.over) continue;
        const double score = static_cast<double>(now.over - fitted.over) /
                             static_cast<double>(1 + std::max<Nanoseconds>(0, fitted.time - now.time));
        if (score <= best_score) continue;
        best_score = score;
        best = std::move(next);
        best_fitted = fitted;
        best_class = c;
      }
    }
    if (best_score <= 0) return;
    choice = std::move(best);
    now = best_fitted;
    gone[best_class] = true;
    Begin(choice, {});
  }
}

double Search::State::CostAByte(GapId gap) const {
  const Value& value = values_.values[At(values_.gaps[At(gap)].value)];
  if (!fitter_.CanGo(gap)) return INFINITY;
  return static_cast<double>(graph_.operators[At(value.maker)].cost) /
         static_cast<double>(graph_.storages[At(value.storage)].bytes);
}

void Search::State::BeginByThreshold() {
  std::vector<std::pair<double, GapId>> by_cost;
  for (GapId gap : can_go_) {
    if (fitter_.CanGo(gap) && (IsLong(gap) || Crosses(gap))) by_cost.push_back({CostAByte(gap), gap});
  }
  std::sort(by_cost.begin(), by_cost.end());
  std::vector<GapId> gaps, light;
  for (const auto& [cost, gap] : by_cost) {
    gaps.push_back(gap);
    if (!graph_.operators[At(values_.values[At(values_.gaps[At(gap)].value)].maker)].heavy) light.push_back(gap);
  }
  constexpr Sources kAll[] = {Sources::kAll, Sources::kHeavy, Sources::kCostlier, Sources::kNone};
  for (const Sources sources : kAll) BeginWithFirst(gaps, sources);
  // Of the cheapest values tries those of the first layers, or of the last.
  constexpr size_t kThresholds = 8;
  for (size_t part = kThresholds + 1; part >= 1; --part) {
    std::vector<GapId> some =
        part > kThresholds
            ? light
            : std::vector<GapId>(gaps.begin(),
                                 gaps.begin() + static_cast<std::ptrdiff_t>(gaps.size() * part / kThresholds));
    std::sort(some.begin(), some.end(), [this](GapId a, GapId b) {
      return std::pair(values_.gaps[At(a)].after, a) < std::pair(values_.gaps[At(b)].after, b);
    });
    for (const bool last : {false, true}) {
      if (last) std::reverse(some.begin(), some.end());
      for (const Sources sources : kAll) {
        if (Elapsed() > 0.3 && best_.fits) return;
        BeginWithFirst(some, sources);
      }
    }
  }
}

void Search::State::BeginWithFirst(const std::vector<GapId>& gaps, Sources sources) {
  FitOptions options;
  options.budget = options_->budget;
  options.may_evict = false;
  const auto first = [&](size_t count) {
    Decisions decisions = NothingGoes(values_);
    for (size_t i = 0; i < count; ++i) decisions.ways[At(gaps[i])] = GapAction::kRecompute;
    for (size_t i = 0; i < count && sources != Sources::kAll; ++i) HoldSources(gaps[i], &decisions, sources);
    fitter_.Fit(options, &decisions);  // limits the sources to the time in which they help
    if (sources == Sources::kAll) {    // holds values that were used up shortly before
      HoldMissed(static_cast<OperatorId>(graph_.operators.size() / 16), &decisions);
      fitter_.Fit(options, &decisions);
    }
    return decisions;
  };
  size_t below = 0, fits = gaps.size();
  Decisions all = first(fits), best = all;
  if (fitter_.Fit(options, &all).fits) {
    while (fits - below > 1) {
      const size_t middle = (below + fits) / 2;
      Decisions asked = first(middle), done = asked;
      if (fitter_.Fit(options, &done).fits) {
        fits = middle;
        best = std::move(asked);
      } else {
        below = middle;
      }
    }
  }
  Begin(best, {});
}

bool Search::State::IsLong(GapId gap, size_t part) const {
  const Gap& of = values_.gaps[At(gap)];
  return static_cast<size_t>(of.before - of.after) > graph_.operators.size() / part;
}

void Search::State::HoldMissed(OperatorId most, Decisions* choice) const {
  for (const auto& [value, at] : fitter_.Missed()) {
    const Value& of = values_.values[At(value)];
    const OperatorId used_up = of.uses.empty() ? of.maker : of.uses.back();
    if (at - used_up <= most) choice->tails[At(value)] = std::max(choice->tails[At(value)], at);
  }
}

void Search::State::HoldSources(GapId gap, Decisions* choice, Sources sources) {
  if (!fitter_.CanGo(gap) || sources == Sources::kNone) return;
  const OperatorId until = values_.gaps[At(gap)].before;
  const Nanoseconds own = graph_.operators[At(values_.values[At(values_.gaps[At(gap)].value)].maker)].cost;
  open_.assign(1, values_.gaps[At(gap)].value);
  constexpr size_t kMax = 24;
  for (size_t i = 0; i < open_.size() && i < kMax; ++i) {
    const OperatorId maker = values_.values[At(open_[i])].maker;
    if (maker < 0) continue;
    for (ValueId input : values_.inputs[At(maker)]) {
      const Value& of = values_.values[At(input)];
      const bool dead = !of.left && of.uses.back() < until && of.overwritten >= until && of.maker >= 0;
      if (!dead) continue;
      const Operator& op = graph_.operators[At(of.maker)];
      if (sources == Sources::kAll || (sources == Sources::kHeavy ? op.heavy : op.cost > own)) {
        choice->tails[At(input)] = std::max(choice->tails[At(input)], until);
      } else {
        open_.push_back(input);
      }
    }
  }
}

}  // namespace hotpack::remat
