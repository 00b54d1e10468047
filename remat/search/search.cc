#include "remat/search/search.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "remat/search/search_state.h"

namespace hotpack::remat {
namespace {

constexpr double kShareToCopyLess = 0.05;  // of the time

// "layer3.conv2" and "layer12.conv2" are similar.
std::string WithoutNumbers(const std::string& name) {
  std::string text;
  for (char c : name) {
    if (c < '0' || c > '9') text += c;
  }
  return text;
}

AlikeGaps ClassesOf(const Graph& graph, const Values& values, const std::vector<GapId>& gaps) {
  AlikeGaps classes;
  classes.of.resize(values.gaps.size(), -1);
  std::vector<std::string> names;
  for (const Operator& op : graph.operators) names.push_back(WithoutNumbers(op.name));
  using Key = std::tuple<std::string, Bytes, size_t, GapId, std::string>;
  std::map<Key, int32_t> known;
  for (GapId g : gaps) {
    const Gap& gap = values.gaps[At(g)];
    const Value& value = values.values[At(gap.value)];
    size_t which = 0;
    if (value.maker >= 0) {
      const std::vector<ValueId>& outputs = values.outputs[At(value.maker)];
      which = static_cast<size_t>(std::find(outputs.begin(), outputs.end(), gap.value) - outputs.begin());
    }
    const std::string maker = value.maker < 0 ? std::string() : names[At(value.maker)];
    const std::string user = At(gap.before) < names.size() ? names[At(gap.before)] : std::string();
    const Key key = {maker, graph.storages[At(value.storage)].bytes, which, g - value.first_gap, user};
    const auto [found, added] = known.try_emplace(key, static_cast<int32_t>(classes.gaps.size()));
    if (added) classes.gaps.emplace_back();
    classes.of[At(g)] = found->second;
    classes.gaps[At(found->second)].push_back(g);
  }
  return classes;
}

}  // namespace

Found Search::State::Run(const SearchOptions& options) {
  options_ = &options;
  FindGaps();
  random_.seed(options.seed);
  begin_ = std::chrono::steady_clock::now();
  steps_ = 0;
  best_ = {};
  now_ = passed_ = {};
  is_new_ = false;
  looking_ = {};
  std::fill(std::begin(best_standing_), std::end(best_standing_), Standing{});
  ForgetLeast();
  if (options.restart) Restart();
  for (const Decisions* from : options.from) {
    Begin(*from, {});
    if (options.swap) Begin(*from, {.fetching = Fetching::kInTime});
    if (options.swap) Begin(*from, {.fetching = Fetching::kWhenIdle});
  }
  if (now_.IsThere()) Improve();
  if (options.swap) CopyLess(1);
  best_.steps = steps_;
  best_.least_time = best_.time;
  for (const Standing& standing : best_standing_) best_.least_time = std::min(best_.least_time, standing.time);
  if (best_.fits) {
    Decisions choice = best_recipe_.choice;
    fitter_.Fit(best_recipe_.options, &choice, &best_recipe_.hold, &best_.schedule);
    best_.choice = std::move(choice);
  }
  return std::move(best_);
}

void Search::State::FindGaps() {
  if (swaps_ == static_cast<int>(options_->swap)) return;
  swaps_ = static_cast<int>(options_->swap);
  can_go_.clear();
  for (size_t g = 0; g < values_.gaps.size(); ++g) {
    const auto gap = static_cast<GapId>(g);
    if (fitter_.CanGo(gap) || (options_->swap && fitter_.CanSwap(gap))) can_go_.push_back(gap);
  }
  classes_ = ClassesOf(graph_, values_, can_go_);
}

double Search::State::TimeSpent() const {
  if (options_->time_limit_ns == INT64_MAX) return 0;
  const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - begin_;
  return spent.count() / static_cast<double>(options_->time_limit_ns);
}

double Search::State::Elapsed() const {
  const double steps =
      options_->steps == INT64_MAX ? 0 : static_cast<double>(steps_) / static_cast<double>(options_->steps);
  return std::max(steps, TimeSpent());
}

void Search::State::Remember(const BudgetFit& fitted, const FitOptions& options, const Decisions& asked) {
  if (!fitted.fits || !IsBetter(fitted.time, fitted.copies, false)) return;
  best_.fits = true;
  best_.time = fitted.time;
  best_.copies = fitted.copies;
  best_.peak = fitted.peak;
  best_recipe_ = {options, asked, hold_};
}

bool Search::State::Passes(const Recipe& recipe) {
  const auto begin = std::chrono::steady_clock::now();
  Decisions choice = recipe.choice;
  Schedule schedule;
  fitter_.Fit(recipe.options, &choice, &recipe.hold, &schedule);
  const bool passes = options_->passes(schedule);
  looking_ += std::chrono::steady_clock::now() - begin;
  return passes;
}

void Search::State::LookAt(const Standing& plan) {
  constexpr double kShare = 0.3;  // of the time so far
  if (!options_->passes || plan.over > 0 || !IsBetter(plan.time, plan.copies, true)) return;
  if (looking_ > kShare * (std::chrono::steady_clock::now() - begin_)) return;
  const Recipe recipe = {
      {.budget = options_->budget, .fetching = plan.fetching, .may_evict = false}, plan.choice, hold_};
  Decisions choice = recipe.choice;
  const BudgetFit fitted = fitter_.Fit(recipe.options, &choice, &recipe.hold);
  if (!fitted.fits || !IsBetter(fitted.time, fitted.copies, true) || !Passes(recipe)) return;
  best_.fits = best_.passes = true;
  best_.time = fitted.time;
  best_.copies = fitted.copies;
  best_.peak = fitted.peak;
  best_recipe_ = recipe;
  passed_ = plan;
}

GapId Search::State::DrawGap(const std::vector<GapId>& gaps) {
  GapId drawn = gaps[Draw(gaps.size())];
  constexpr int kTournament = 6;
  for (int i = Draw(2) == 0 ? 1 : kTournament; i > 1; --i) {
    const GapId other = gaps[Draw(gaps.size())];
    if (BytesOf(other) > BytesOf(drawn)) drawn = other;
  }
  return drawn;
}

void Search::State::AddAlike(GapId gap, std::vector<GapId>* gaps) {
  const std::vector<GapId>& alike = classes_.gaps[At(classes_.of[At(gap)])];
  size_t most = 1;  // exponent of the largest run
  while ((size_t{1} << most) < alike.size()) ++most;
  const size_t count = size_t{1} << Draw(most + 1);
  const auto at = static_cast<size_t>(std::find(alike.begin(), alike.end(), gap) - alike.begin());
  const size_t from = count >= alike.size()
                          ? 0
                          : std::min(at - std::min(at, Draw(count)), alike.size() - std::min(count, alike.size()));
  for (size_t i = from; i < alike.size() && i < from + count; ++i) gaps->push_back(alike[i]);
}

void Search::State::Improve() {
  // Each round starts from the best plan, and rounds get longer. The warmth is how much worse a step may make the plan,
  // as a part of the time above the minimum. It decreases to zero within a round.
  constexpr double kWarmth[] = {0, 0.003, 0, 0.02};
  double warmth = 0;
  size_t rounds = 0;
  int64_t round_end = 0, round = 1000;
  const double until = options_->swap ? 1 - kShareToCopyLess : 1;
  while (steps_ < options_->steps && !IsDone()) {
    if (steps_ % 16 == 0) {
      if (Elapsed() >= until) break;
      if (is_new_) LookAt(now_);
      is_new_ = false;
    }
    if (steps_ >= round_end) {
      round_end = steps_ + round;
      warmth = kWarmth[rounds++ % std::size(kWarmth)];
      if (rounds % 2 == 0) round *= 2;
      if (BestStanding().IsThere()) now_ = BestStanding();
      // The best plan of the other way to fetch, if it is not much slower.
      const Standing& other = best_standing_[rounds / std::size(kWarmth) % kFetchings];
      if (other.IsThere() && now_.over == 0 && 4 * (other.time - total_) <= 5 * (now_.time - total_)) now_ = other;
      if (passed_.IsThere() && rounds % 2 == 0) now_ = passed_;
    }
    ++steps_;
    const double left = static_cast<double>(round_end - steps_) / static_cast<double>(round);
    const auto worse =
        best_.fits ? static_cast<Nanoseconds>(warmth * left * static_cast<double>(best_.time - total_)) : 0;
    if (!Step(worse)) break;
  }
}

void Search::State::CopyLess(double until) {
  if (!best_.fits) return;
  const Found best = best_;
  const Recipe recipe = best_recipe_;
  Decisions choice = best_recipe_.choice;
  fitter_.Fit(best_recipe_.options, &choice, &best_recipe_.hold);
  std::vector<GapId> copied;
  for (GapId gap : can_go_) {
    if (choice.ways[At(gap)] == GapAction::kOffload) copied.push_back(gap);
  }
  FitOptions options;
  options.budget = options_->budget;
  options.fetching = best_recipe_.options.fetching;
  options.may_evict = false;
  options.max_over = 0;
  // Keeps halves, quarters, ..., and single values, as time allows.
  for (size_t count = copied.size(); count > 0; count /= 2) {
    for (size_t from = 0; from < copied.size(); from += count) {
      if (TimeSpent() >= until) break;
      Decisions asked = choice;
      bool changed = false;
      for (size_t i = from; i < std::min(from + count, copied.size()); ++i) {
        GapAction& way = asked.ways[At(copied[i])];
        changed = changed || way == GapAction::kOffload;
        if (way == GapAction::kOffload) way = GapAction::kKeep;
      }
      if (!changed) continue;
      options.max_time = best_.time;
      Decisions done = asked;
      const BudgetFit fitted = fitter_.Fit(options, &done, &hold_);
      if (!fitted.fits || fitted.time > best_.time) continue;
      best_.time = fitted.time;
      best_.copies = fitted.copies;
      best_.peak = fitted.peak;
      best_recipe_ = {options, std::move(asked), hold_};
      choice = std::move(done);
    }
  }
  if (best_.passes && !Passes(best_recipe_)) {
    best_ = best;
    best_recipe_ = recipe;
    return;
  }
  now_ = {std::move(choice), 0, best_.time, options.fetching, best_.copies};
  BestStanding() = now_;
  is_new_ = !best_.passes;
}

bool Search::State::Step(Nanoseconds worse) {
  gone_.clear();
  for (GapId gap : can_go_) {
    if (now_.choice.ways[At(gap)] != GapAction::kKeep) gone_.push_back(gap);
  }
  if (gone_.empty() && now_.over == 0) return false;
  FitOptions options;
  options.budget = options_->budget;
  options.fetching = now_.fetching;
  options.noise = Draw(2) == 0 ? 0.5 : 0.1;
  options.seed = random_();
  options.max_over = now_.over;
  if (now_.over == 0) options.max_time = now_.time + worse;
  options.wait = 0.25 * static_cast<double>(Draw(6));
  if (options_->swap) options.copy_price = DrawCopyPrice();
  Decisions asked = now_.choice;
  held_.clear();
  Change(&asked);
  for (GapId gap : held_) asked.ways[At(gap)] = GapAction::kKeep, hold_[At(gap)] = true;
  Decisions choice = asked;
  BudgetFit fitted = fitter_.Fit(options, &choice, &hold_);
  if (now_.IsWorseThan(fitted, worse)) {
    Remember(fitted, options, asked);
    for (GapId gap : held_) hold_[At(gap)] = false;
    if (fitted.evictions > 0) {
      asked = choice;
      fitted = fitter_.Fit(options, &choice, &hold_);
      Remember(fitted, options, asked);
    }
    if (now_.IsWorseThan(fitted, worse)) {
      now_ = {std::move(choice), fitted.over, fitted.time, options.fetching, fitted.copies};
      is_new_ = true;
    }
    if (now_.over == 0 && now_.time < BestStanding().time) BestStanding() = now_;
  } else {
    for (GapId gap : held_) hold_[At(gap)] = false;
  }
  return true;
}

void Search::State::Change(Decisions* asked) {
  size_t count = 1;
  while (count < 32 && Draw(2) == 0) count *= 2;
  if (now_.over > 0 && (gone_.empty() || Draw(2) == 0)) {  // discards more, by any change
    if (can_go_.empty()) return;
    for (size_t i = 0; i < count; ++i) {
      GapAction& way = asked->ways[At(DrawGap(can_go_))];
      way = options_->swap && Draw(2) == 0 ? GapAction::kOffload
            : way == GapAction::kKeep      ? GapAction::kRecompute
                                           : GapAction::kRecomputeOnce;
    }
    return;
  }
  switch (Draw(13)) {
    case 0:
    case 1:
    case 2:  // keeps some
      for (size_t i = 0; i < count; ++i) held_.push_back(DrawGap(gone_));
      break;
    case 3:
    case 4:
    case 5: {  // keeps consecutive ones
      const size_t from = Draw(gone_.size());
      for (size_t i = 0; i < count; ++i) held_.push_back(gone_[(from + i) % gone_.size()]);
      break;
    }
    case 6:  // keeps some similar ones
      AddAlike(DrawGap(gone_), &held_);
      break;
    case 7:  // values recomputed for others are held, or dropped at once
      for (size_t i = 0; i < count; ++i) {
        const GapId gap = DrawGap(gone_);
        GapAction& way = asked->ways[At(gap)];
        const bool swap = options_->swap && way != GapAction::kOffload && fitter_.CanSwap(gap) && Draw(2) == 0;
        way = swap                           ? GapAction::kOffload
              : way == GapAction::kRecompute ? GapAction::kRecomputeOnce
                                             : GapAction::kRecompute;
      }
      break;
    case 8: {  // discards some, and keeps others
      for (size_t i = 0; i < count; ++i) LetGo(DrawGap(can_go_), asked, options_->swap && Draw(2) == 0);
      for (size_t i = 0; i < count; ++i) held_.push_back(DrawGap(gone_));
      break;
    }
    case 9: {  // discards some similar ones, and keeps as many bytes
      ExchangeAlike(asked, false);
      break;
    }
    case 10: {  // the same, and holds their sources
      ExchangeAlike(asked, true);
      break;
    }
    case 11: {  // holds the values that were missed
      Decisions now = now_.choice;
      FitOptions options;
      options.budget = options_->budget;
      fitter_.Fit(options, &now);
      HoldMissed(static_cast<OperatorId>(graph_.operators.size() >> Draw(10)), asked);
      break;
    }
    default: {  // holds the sources of some
      alike_.clear();
      AddAlike(DrawGap(gone_), &alike_);
      for (GapId gap : alike_) HoldSources(gap, asked, DrawSources());
      break;
    }
  }
}

double Search::State::DrawCopyPrice() {
  constexpr double kPrices[] = {-1, 0, 0.02, 0.1, 0.3, 1};
  return kPrices[Draw(std::size(kPrices))];
}

void Search::State::LetGo(GapId gap, Decisions* asked, bool swap) {
  GapAction& way = asked->ways[At(gap)];
  if (way == GapAction::kKeep) way = swap && fitter_.CanSwap(gap) ? GapAction::kOffload : GapAction::kRecompute;
}

void Search::State::ExchangeAlike(Decisions* asked, bool sources) {
  alike_.clear();
  AddAlike(DrawGap(can_go_), &alike_);
  Bytes bytes = 0;
  const bool swap = options_->swap && Draw(2) == 0;
  for (GapId gap : alike_) {
    LetGo(gap, asked, swap);
    if (sources) HoldSources(gap, asked, DrawSources());
    bytes += BytesOf(gap);
  }
  for (int tries = 0; bytes > 0 && tries < 8; ++tries) {
    const size_t before = held_.size();
    AddAlike(DrawGap(gone_), &held_);
    for (size_t i = before; i < held_.size(); ++i) bytes -= BytesOf(held_[i]);
  }
}

Search::Search(const Graph& graph, const Values& values, const Machine& machine)
    : state_(std::make_unique<State>(graph, values, machine)) {}
Search::~Search() = default;
Found Search::Run(const SearchOptions& options) { return state_->Run(options); }

}  // namespace hotpack::remat
