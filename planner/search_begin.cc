#include <algorithm>
#include <cmath>

#include "planner/search_state.h"

namespace hotpack::planner {

void Search::State::Begin(const Decisions& asked, FitOptions options) {
  options.budget = options_->budget;
  constexpr int kMostTimes = 100;  // the program's time
  options.most_time = best_.fits ? 2 * best_.time : kMostTimes * (TotalCost(graph_) + 1);
  options.most_over = best_.fits ? 0 : now_.over;
  Decisions choice = asked;
  Fitted fitted = fitter_.Fit(options, &choice, &hold_);
  Remember(fitted, options, asked);
  if (fitted.went > 0 && fitted.over < INT64_MAX) {
    const Decisions done = choice;
    fitted = fitter_.Fit(options, &choice, &hold_);
    Remember(fitted, options, done);
  }
  if (std::pair(fitted.over, fitted.time) < std::pair(now_.over, now_.time)) now_ = {std::move(choice), fitted.over, fitted.time};
}

void Search::State::BeginAnew() {
  const Decisions nothing = NothingGoes(values_);
  if (options_->swap) BeginBySwaps();
  for (const double wait : {0.5, 0.0, 1.0, 0.25, 0.75, 1.5}) {
    Begin(nothing, {.wait = wait});
    if (Elapsed() > 0.5 && best_.fits) return;
  }
  for (const double wait : {0.0, 0.5, 1.0, 2.0}) Begin(nothing, {.wait = wait, .neighbors = false});
  BeginByThreshold();
  BeginByClasses();
}

void Search::State::BeginBySwaps() {
  for (const bool given : {false, true}) {
    std::vector<GapId> gaps;
    Bytes all = 0;
    for (GapId gap : can_go_) {
      const bool is_given = values_.values[At(values_.gaps[At(gap)].value)].maker < 0;
      if ((is_given && !given) || !IsLong(gap, 64) || !fitter_.CanSwap(gap)) continue;
      gaps.push_back(gap);
      all += BytesOf(gap);
    }
    for (const bool longest : {false, true}) {
      std::stable_sort(gaps.begin(), gaps.end(), [&](GapId a, GapId b) {
        const Gap &one = values_.gaps[At(a)], &other = values_.gaps[At(b)];
        return longest ? one.before - one.after > other.before - other.after : one.after < other.after;
      });
      BeginBySwapsOf(gaps, all);
    }
  }
}

void Search::State::BeginBySwapsOf(const std::vector<GapId>& gaps, Bytes all) {
  constexpr int kParts = 16;
  for (int part = kParts; part >= 1 && Elapsed() < 0.4; --part) {  // the larger ones fit sooner
    Decisions decisions = NothingGoes(values_);
    double bytes = 0;
    for (GapId gap : gaps) {
      if (bytes * kParts > static_cast<double>(all) * part) break;
      decisions.ways[At(gap)] = Way::kSwap;
      bytes += static_cast<double>(BytesOf(gap));
    }
    Begin(decisions, {});
  }
}

void Search::State::BeginByClasses() {
  constexpr double kShare = 0.3;  // of the time
  const double until = Elapsed() + kShare;
  const size_t count = classes_.gaps.size();
  constexpr size_t kMost = 300;
  if (count == 0 || count > kMost || count * 2 > can_go_.size()) return;
  FitOptions options;
  options.budget = options_->budget;
  options.mends = false;
  Decisions choice = NothingGoes(values_);
  Decisions done = choice;
  Fitted now = fitter_.Fit(options, &done);
  std::vector<bool> gone(count);
  while (now.over > 0) {
    Decisions best;
    Fitted best_fitted;
    double best_score = 0;
    size_t best_class = 0;
    for (size_t c = 0; c < count; ++c) {
      if (gone[c]) continue;
      enum { kAlone, kWithSources, kToHost };
      for (const auto kind : {kAlone, kWithSources, kToHost}) {
        if (Elapsed() > until) return;
        if (kind == kToHost && !options_->swap) continue;
        Decisions next = choice;
        for (GapId gap : classes_.gaps[c]) next.ways[At(gap)] = kind == kToHost ? Way::kSwap : Way::kAgain;
        if (kind == kWithSources) {
          for (GapId gap : classes_.gaps[c]) HoldSources(gap, &next, 1.0);
        }
        done = next;
        options.most_over = now.over;
        const Fitted fitted = fitter_.Fit(options, &done);
        if (fitted.over >= now.over) continue;
        const double score = static_cast<double>(now.over - fitted.over) / static_cast<double>(1 + std::max<Nanoseconds>(0, fitted.time - now.time));
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
  return static_cast<double>(graph_.operators[At(value.maker)].cost) / static_cast<double>(graph_.storages[At(value.storage)].bytes);
}

void Search::State::BeginByThreshold() {
  std::vector<std::pair<double, GapId>> by_cost;
  for (GapId gap : can_go_) {
    if (fitter_.CanGo(gap)) by_cost.push_back({CostAByte(gap), gap});
  }
  std::sort(by_cost.begin(), by_cost.end());
  constexpr int kThresholds = 16;
  for (const bool tails : {true, false}) {
    for (int part = 1; part <= kThresholds && Elapsed() < 0.3; ++part) {
      Decisions choice = NothingGoes(values_);
      for (size_t i = 0; i < by_cost.size() * static_cast<size_t>(part) / kThresholds; ++i) {
        const GapId gap = by_cost[i].second;
        if (!IsLong(gap)) continue;
        choice.ways[At(gap)] = Way::kAgain;
      }
      if (tails) {
        for (GapId gap : can_go_) {
          if (choice.ways[At(gap)] != Way::kHold) HoldSources(gap, &choice, 1.0);
        }
      }
      Begin(choice, {});
    }
  }
}

bool Search::State::IsLong(GapId gap, size_t part) const {
  const Gap& of = values_.gaps[At(gap)];
  return static_cast<size_t>(of.before - of.after) > graph_.operators.size() / part;
}

void Search::State::HoldSources(GapId gap, Decisions* choice, double likely) {
  if (!fitter_.CanGo(gap)) return;
  const OperatorId until = values_.gaps[At(gap)].before;
  open_.assign(1, values_.gaps[At(gap)].value);
  constexpr size_t kMost = 16;
  for (size_t i = 0; i < open_.size() && i < kMost; ++i) {
    const OperatorId maker = values_.values[At(open_[i])].maker;
    if (maker < 0) continue;
    for (ValueId input : values_.inputs[At(maker)]) {
      const Value& of = values_.values[At(input)];
      const bool dead = !of.left && of.uses.back() < until && of.overwritten >= until && of.maker >= 0;
      if (!dead) continue;
      const double cost = static_cast<double>(graph_.operators[At(of.maker)].cost);
      const double target = static_cast<double>(graph_.operators[At(values_.values[At(values_.gaps[At(gap)].value)].maker)].cost);
      if (cost > likely * target) {
        choice->tails[At(input)] = std::max(choice->tails[At(input)], until);
      } else {
        open_.push_back(input);
      }
    }
  }
}

}  // namespace hotpack::planner
