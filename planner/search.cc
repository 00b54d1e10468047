#include "planner/search.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <utility>

namespace hotpack::planner {
namespace {

size_t At(int32_t id) { return static_cast<size_t>(id); }

// Gaps of layers alike: the same gap of results of operators of the same name. By gap its class; and each class's gaps, in the
// program's order.
struct Classes {
  std::vector<int32_t> of;
  std::vector<std::vector<GapId>> gaps;
};

// "layer3.conv2" and "layer12.conv2" are alike.
std::string WithoutNumbers(const std::string& name) {
  std::string text;
  for (char c : name) {
    if (c < '0' || c > '9') text += c;
  }
  return text;
}

Classes ClassesOf(const Graph& graph, const Values& values, const std::vector<GapId>& gaps) {
  Classes classes;
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

class Search::State {
 public:
  State(const Graph& graph, const Values& values, const Machine& machine)
      : graph_(graph), values_(values), fitter_(graph, values, machine), hold_(values.gaps.size()) {}

  Found Run(const SearchOptions& options, const Decisions* from) {
    options_ = &options;
    FindGaps();
    random_.seed(options.seed);
    begin_ = std::chrono::steady_clock::now();
    steps_ = 0;
    best_ = {};
    now_ = {};
    if (from != nullptr) {
      Begin(*from, {});
    } else {
      BeginAnew();
    }
    best_standing_ = now_.over == 0 ? now_ : Standing{};
    if (now_.IsThere()) Improve();
    best_.steps = steps_;
    if (best_.fits) {
      Decisions choice = best_recipe_.choice;
      fitter_.Fit(best_recipe_.options, &choice, &best_recipe_.hold, &best_.schedule);
      best_.choice = std::move(choice);
    }
    return std::move(best_);
  }

 private:
  // What gives a plan again.
  struct Recipe {
    FitOptions options;
    Decisions choice;
    std::vector<bool> hold;
  };
  struct Standing {
    Decisions choice;
    Bytes over = INT64_MAX;
    Nanoseconds time = INT64_MAX;
    bool IsThere() const { return over < INT64_MAX; }
    bool IsWorseThan(const Fitted& other, Nanoseconds worse) const {
      return std::pair(other.over, other.time) <= std::pair(over, over > other.over ? INT64_MAX : time + worse);
    }
  };

  // What may be let go at all, and what is alike in it.
  void FindGaps() {
    if (swaps_ == static_cast<int>(options_->swap)) return;
    swaps_ = static_cast<int>(options_->swap);
    can_go_.clear();
    for (size_t g = 0; g < values_.gaps.size(); ++g) {
      const auto gap = static_cast<GapId>(g);
      if (fitter_.CanGo(gap) || (options_->swap && fitter_.CanSwap(gap))) can_go_.push_back(gap);
    }
    classes_ = ClassesOf(graph_, values_, can_go_);
  }

  size_t Draw(size_t below) { return static_cast<size_t>(random_() % below); }
  // The part of the time that is over.
  double Elapsed() const {
    double part = options_->steps == INT64_MAX ? 0 : static_cast<double>(steps_) / static_cast<double>(options_->steps);
    if (options_->time_limit_ns != INT64_MAX) {
      const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - begin_;
      part = std::max(part, spent.count() / static_cast<double>(options_->time_limit_ns));
    }
    return part;
  }

  void Remember(const Fitted& fitted, const FitOptions& options, const Decisions& asked) {
    if (!fitted.fits || (best_.fits && fitted.time >= best_.time)) return;
    best_.fits = true;
    best_.time = fitted.time;
    best_.peak = fitted.peak;
    best_recipe_ = {options, asked, hold_};
  }

  void Begin(const Decisions& asked, FitOptions options) {
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

  void BeginAnew() {
    const Decisions nothing = NothingGoes(values_);
    for (const double wait : {0.5, 0.0, 1.0, 0.25, 0.75, 1.5}) {
      Begin(nothing, {.wait = wait});
      if (Elapsed() > 0.5 && best_.fits) return;
    }
    for (const double wait : {0.0, 0.5, 1.0, 2.0}) Begin(nothing, {.wait = wait, .neighbors = false});
    BeginByThreshold();
    if (options_->swap) BeginBySwaps();
    BeginByClasses();
  }

  // A part of what waits long goes to the host, what was made first or what waits longest.
  void BeginBySwaps() {
    std::vector<GapId> gaps;
    Bytes all = 0;
    for (GapId gap : can_go_) {
      if (!IsLong(gap) || !fitter_.CanSwap(gap)) continue;
      gaps.push_back(gap);
      all += BytesOf(gap);
    }
    constexpr int kParts = 12;
    for (const bool longest : {false, true}) {
      std::stable_sort(gaps.begin(), gaps.end(), [&](GapId a, GapId b) {
        const Gap &one = values_.gaps[At(a)], &other = values_.gaps[At(b)];
        return longest ? one.before - one.after > other.before - other.after : one.after < other.after;
      });
      for (int part = 1; part <= kParts && Elapsed() < 0.3; ++part) {
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
  }

  // Lets go of the same gap of all layers alike at once, what helps most for its time first, with or without what it is made from.
  void BeginByClasses() {
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

  double CostAByte(GapId gap) const {
    const Value& value = values_.values[At(values_.gaps[At(gap)].value)];
    if (!fitter_.CanGo(gap)) return INFINITY;
    return static_cast<double>(graph_.operators[At(value.maker)].cost) / static_cast<double>(graph_.storages[At(value.storage)].bytes);
  }

  // What costs less a byte than a threshold goes between the passes, and what it is made from stays.
  void BeginByThreshold() {
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
  // Goes over a good part of the step.
  bool IsLong(GapId gap) const {
    const Gap& of = values_.gaps[At(gap)];
    return static_cast<size_t>(of.before - of.after) > graph_.operators.size() / 16;
  }

  // What is used up by the time the gap ends, and is not to go itself, stays for it: up to the operators that do not run again.
  void HoldSources(GapId gap, Decisions* choice, double likely) {
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

  // A run of gaps alike around this one: 1, 2, 4, ... of them.
  void AddAlike(GapId gap, std::vector<GapId>* gaps) {
    const std::vector<GapId>& alike = classes_.gaps[At(classes_.of[At(gap)])];
    size_t most = 1;  // power
    while ((size_t{1} << most) < alike.size()) ++most;
    const size_t count = size_t{1} << Draw(most + 1);
    const auto at = static_cast<size_t>(std::find(alike.begin(), alike.end(), gap) - alike.begin());
    const size_t from = count >= alike.size() ? 0 : std::min(at - std::min(at, Draw(count)), alike.size() - std::min(count, alike.size()));
    for (size_t i = from; i < alike.size() && i < from + count; ++i) gaps->push_back(alike[i]);
  }

  void Improve() {
    // Several rounds, ever longer, each from the best plan: how much worse a step may make it, as a part of what is added to the least
    // time; less and less to the end of the round.
    constexpr double kWarmth[] = {0, 0.003, 0, 0.02};
    double warmth = 0;
    size_t rounds = 0;
    int64_t round_end = 0, round = 1000;
    const Nanoseconds total = TotalCost(graph_);
    while (steps_ < options_->steps) {
      if (steps_ % 16 == 0 && Elapsed() >= 1) break;
      if (steps_ >= round_end) {
        round_end = steps_ + round;
        warmth = kWarmth[rounds++ % std::size(kWarmth)];
        if (rounds % 2 == 0) round *= 2;
        if (best_standing_.IsThere()) now_ = best_standing_;
      }
      ++steps_;
      const double left = static_cast<double>(round_end - steps_) / static_cast<double>(round);
      const auto worse = best_.fits ? static_cast<Nanoseconds>(warmth * left * static_cast<double>(best_.time - total)) : 0;
      if (!Step(worse)) break;
    }
  }

  // One change. False if there is none to make.
  bool Step(Nanoseconds worse) {
    gone_.clear();
    for (GapId gap : can_go_) {
      if (now_.choice.ways[At(gap)] != Way::kHold) gone_.push_back(gap);
    }
    if (gone_.empty() && now_.over == 0) return false;
    FitOptions options;
    options.budget = options_->budget;
    options.noise = Draw(2) == 0 ? 0.5 : 0.1;
    options.seed = random_();
    options.most_over = now_.over;
    if (now_.over == 0) options.most_time = now_.time + worse;
    options.wait = 0.25 * static_cast<double>(Draw(6));
    Decisions asked = now_.choice;
    held_.clear();
    Change(&asked);
    for (GapId gap : held_) asked.ways[At(gap)] = Way::kHold, hold_[At(gap)] = true;
    Decisions choice = asked;
    Fitted fitted = fitter_.Fit(options, &choice, &hold_);
    if (now_.IsWorseThan(fitted, worse)) {
      Remember(fitted, options, asked);
      for (GapId gap : held_) hold_[At(gap)] = false;
      if (fitted.went > 0) {
        asked = choice;
        fitted = fitter_.Fit(options, &choice, &hold_);
        Remember(fitted, options, asked);
      }
      if (now_.IsWorseThan(fitted, worse)) now_ = {std::move(choice), fitted.over, fitted.time};
      if (now_.over == 0 && now_.time < best_standing_.time) best_standing_ = now_;
    } else {
      for (GapId gap : held_) hold_[At(gap)] = false;
    }
    return true;
  }

  void Change(Decisions* asked) {
    size_t count = 1;
    while (count < 32 && Draw(2) == 0) count *= 2;
    if (now_.over > 0 && (gone_.empty() || Draw(2) == 0)) {  // whatever lets go of more
      if (can_go_.empty()) return;
      for (size_t i = 0; i < count; ++i) {
        Way& way = asked->ways[At(can_go_[Draw(can_go_.size())])];
        way = options_->swap && Draw(2) == 0 ? Way::kSwap : way == Way::kHold ? Way::kAgain : Way::kAgainOnce;
      }
      return;
    }
    switch (Draw(12)) {
      case 0: case 1: case 2:  // holds some
        for (size_t i = 0; i < count; ++i) held_.push_back(gone_[Draw(gone_.size())]);
        break;
      case 3: case 4: case 5: {  // holds what follows each other
        const size_t from = Draw(gone_.size());
        for (size_t i = 0; i < count; ++i) held_.push_back(gone_[(from + i) % gone_.size()]);
        break;
      }
      case 6:  // holds some alike
        AddAlike(gone_[Draw(gone_.size())], &held_);
        break;
      case 7:  // what is made again for others stays, or goes at once
        for (size_t i = 0; i < count; ++i) {
          const GapId gap = gone_[Draw(gone_.size())];
          Way& way = asked->ways[At(gap)];
          const bool swap = options_->swap && way != Way::kSwap && fitter_.CanSwap(gap) && Draw(2) == 0;
          way = swap ? Way::kSwap : way == Way::kAgain ? Way::kAgainOnce : Way::kAgain;
        }
        break;
      case 8: {  // lets go of some, and holds others
        for (size_t i = 0; i < count; ++i) LetGo(can_go_[Draw(can_go_.size())], asked, options_->swap && Draw(2) == 0);
        for (size_t i = 0; i < count; ++i) held_.push_back(gone_[Draw(gone_.size())]);
        break;
      }
      case 9: {  // lets go of some alike, and holds as much
        ExchangeAlike(asked, false);
        break;
      }
      case 10: {  // the same, and what they are made from stays
        ExchangeAlike(asked, true);
        break;
      }
      default: {  // what some are made from stays
        alike_.clear();
        AddAlike(gone_[Draw(gone_.size())], &alike_);
        for (GapId gap : alike_) HoldSources(gap, asked, Draw(2) == 0 ? 1.0 : 0.0);
        break;
      }
    }
  }
  void LetGo(GapId gap, Decisions* asked, bool swap) {
    Way& way = asked->ways[At(gap)];
    if (way == Way::kHold) way = swap && fitter_.CanSwap(gap) ? Way::kSwap : Way::kAgain;
  }
  void ExchangeAlike(Decisions* asked, bool sources) {
    alike_.clear();
    AddAlike(can_go_[Draw(can_go_.size())], &alike_);
    Bytes bytes = 0;
    const bool swap = options_->swap && Draw(2) == 0;
    for (GapId gap : alike_) {
      LetGo(gap, asked, swap);
      if (sources) HoldSources(gap, asked, Draw(2) == 0 ? 1.0 : 0.0);
      bytes += BytesOf(gap);
    }
    for (int tries = 0; bytes > 0 && tries < 8; ++tries) {
      const size_t before = held_.size();
      AddAlike(gone_[Draw(gone_.size())], &held_);
      for (size_t i = before; i < held_.size(); ++i) bytes -= BytesOf(held_[i]);
    }
  }
  Bytes BytesOf(GapId gap) const { return graph_.storages[At(values_.values[At(values_.gaps[At(gap)].value)].storage)].bytes; }

  const Graph& graph_;
  const Values& values_;
  Fitter fitter_;
  int swaps_ = -1;  // what `can_go_` and `classes_` are for
  Classes classes_;
  std::vector<GapId> can_go_;
  const SearchOptions* options_ = nullptr;
  std::chrono::steady_clock::time_point begin_;
  std::mt19937_64 random_;
  int64_t steps_ = 0;
  Found best_;
  Recipe best_recipe_;
  Standing now_, best_standing_;
  std::vector<bool> hold_;  // by gap, of the step under way
  std::vector<GapId> gone_, held_, alike_;
  std::vector<ValueId> open_;
};

Search::Search(const Graph& graph, const Values& values, const Machine& machine) : state_(std::make_unique<State>(graph, values, machine)) {}
Search::~Search() = default;
Found Search::Run(const SearchOptions& options, const Decisions* from) { return state_->Run(options, from); }

}  // namespace hotpack::planner
