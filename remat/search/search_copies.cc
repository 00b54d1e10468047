#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "remat/core/load.h"
#include "remat/search/search_state.h"

namespace hotpack::remat {
namespace {

constexpr double kLowPrice = 0.02;  // of a copy
constexpr Fetching kAllFetchings[] = {Fetching::kInTime, Fetching::kWithRoom, Fetching::kWhenIdle};

using Corner = PointCut::Corner;

// The corners of a cut's hull of (bytes, time) around the one whose plans are estimated to take least time.
class CornersNearBest {
 public:
  using Estimate = std::function<double(const Corner&)>;
  // Finds corners until the best one and its neighbors are known, or `goes_on` returns false.
  CornersNearBest(PointCut* cut, Estimate estimate, const std::function<bool()>& goes_on)
      : estimate_(std::move(estimate)) {
    Add(0, cut->Fastest());
    Add(1, cut->Smallest());
    while (goes_on()) {
      const size_t best = Best();
      if (!(best > 0 && Split(cut, best - 1)) && !Split(cut, best)) return;
    }
  }
  // Removes and returns the best one. Nothing: none is left.
  std::optional<Corner> Next() {
    if (corners_.empty()) return std::nullopt;
    const auto best = static_cast<std::ptrdiff_t>(Best());
    Corner corner = std::move(corners_[static_cast<size_t>(best)].corner);
    corners_.erase(corners_.begin() + best);
    return corner;
  }

 private:
  struct Estimated {
    Corner corner;
    double time = 0;
    bool is_neighbor = false;  // none is between it and the next
  };
  size_t Best() const {
    const auto least = std::min_element(corners_.begin(), corners_.end(),
                                        [](const Estimated& a, const Estimated& b) { return a.time < b.time; });
    return static_cast<size_t>(least - corners_.begin());
  }
  void Add(size_t at, Corner corner) {
    const double time = estimate_(corner);
    corners_.insert(corners_.begin() + static_cast<std::ptrdiff_t>(at), {std::move(corner), time, false});
  }
  // Adds the corner between this one and the next. Returns false if there is none.
  bool Split(PointCut* cut, size_t at) {
    if (at + 1 >= corners_.size() || corners_[at].is_neighbor) return false;
    std::optional<Corner> corner = cut->Between(corners_[at].corner, corners_[at + 1].corner);
    corners_[at].is_neighbor = !corner;
    if (corner) Add(at + 1, *std::move(corner));
    return corner.has_value();
  }

  const Estimate estimate_;
  std::vector<Estimated> corners_;  // descending bytes
};

}  // namespace

void Search::State::BeginByCutWithCopies() {
  constexpr double kShare = 0.2;  // of the time
  constexpr int kMostCorners = 8;
  if (can_go_.empty()) return;
  const double until = Elapsed() + kShare;
  const std::vector<Bytes> wanted = WantedByOperator(graph_, values_);
  const auto at = static_cast<OperatorId>(std::max_element(wanted.begin(), wanted.end()) - wanted.begin());
  PointCut cut(graph_, values_, RunOrder(graph_, values_, true), at, static_cast<OperatorId>(graph_.operators.size()));
  double before = 0, on_host = 0;
  for (OperatorId op = 0; op <= at; ++op) before += static_cast<double>(graph_.operators[At(op)].cost);
  for (const Storage& storage : graph_.storages) on_host += storage.away ? static_cast<double>(storage.bytes) : 0;
  const auto estimate = [&](const Corner& corner) {
    const auto away = std::max(0.0, static_cast<double>(corner.bytes - options_->budget));
    return std::max(before, std::max(0.0, away - on_host) / machine_.bytes_per_ns_to_host) +
           std::max(static_cast<double>(total_ + corner.time) - before, away / machine_.bytes_per_ns_to_device);
  };
  CornersNearBest corners(&cut, estimate, [&] { return !(Elapsed() > until); });
  for (int i = 0; i < kMostCorners; ++i) {
    const std::optional<Corner> corner = corners.Next();
    if (!corner) return;
    const Decisions again = DecisionsOf(*corner, {}, at);
    std::vector<GapId> gaps = GapsOver(at, corner->held);
    for (const bool last_used : {true, false}) {
      std::stable_sort(gaps.begin(), gaps.end(), [&](GapId a, GapId b) {
        const Gap &one = values_.gaps[At(a)], &other = values_.gaps[At(b)];
        if (IsAway(a) != IsAway(b)) return IsAway(a);
        return last_used ? one.before > other.before : one.after < other.after;
      });
      Decisions decisions = again;
      Bytes away = corner->bytes - options_->budget;
      for (GapId gap : gaps) {
        if (away <= 0) break;
        decisions.ways[At(gap)] = GapAction::kOffload;
        away -= BytesOf(gap);
      }
      for (const Fetching fetching : kAllFetchings) {
        if (Elapsed() > until && best_.fits) return;
        if (!IsFarBehind(fetching)) Begin(decisions, {.fetching = fetching, .copy_price = kLowPrice});
      }
    }
  }
}

std::vector<GapId> Search::State::GapsOver(OperatorId at, const std::vector<ValueId>& values) const {
  std::vector<GapId> gaps;
  for (ValueId value : values) {
    const Value& of = values_.values[At(value)];
    for (GapId g = of.first_gap; g < of.first_gap + values_.GapsOf(value); ++g) {
      const Gap& gap = values_.gaps[At(g)];
      if (gap.after < at && at < gap.before && fitter_.CanSwap(g)) gaps.push_back(g);
    }
  }
  return gaps;
}

void Search::State::BeginByCopyPrices() {
  constexpr double kUntil = 0.3;  // of the time
  const Decisions nothing = NothingGoes(values_);
  for (const double price : {kLowPrice, 0.3, 0.0, 0.1, 1.0}) {
    for (const double wait : {1.0, 0.5, 0.0}) {
      for (const Fetching fetching : kAllFetchings) {
        if (Elapsed() > kUntil) return;
        if (IsFarBehind(fetching)) continue;
        Begin(nothing, {.wait = wait, .fetching = fetching, .copy_price = price});
      }
    }
  }
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
  for (int part = kParts; part >= 1 && Elapsed() < 0.4; --part) {  // larger parts fit sooner
    Decisions decisions = NothingGoes(values_);
    double bytes = 0;
    for (GapId gap : gaps) {
      if (bytes * kParts > static_cast<double>(all) * part) break;
      decisions.ways[At(gap)] = GapAction::kOffload;
      bytes += static_cast<double>(BytesOf(gap));
    }
    for (const Fetching fetching : kAllFetchings) {
      if (!IsFarBehind(fetching)) Begin(decisions, {.fetching = fetching});
    }
  }
}

void Search::State::BeginOneByOne() {
  constexpr double kShare = 0.2;  // of the time
  const double until = TimeSpent() + kShare;
  constexpr std::ptrdiff_t kMax = 64;
  std::vector<GapId> gaps = can_go_;
  const auto weight = [this](GapId gap) {
    const Gap& of = values_.gaps[At(gap)];
    return static_cast<double>(BytesOf(gap)) * (of.before - of.after);
  };
  const auto end = gaps.begin() + std::min(kMax, static_cast<std::ptrdiff_t>(gaps.size()));
  std::partial_sort(gaps.begin(), end, gaps.end(), [&](GapId a, GapId b) { return weight(a) > weight(b); });
  gaps.erase(end, gaps.end());
  FitOptions options;
  options.budget = options_->budget;
  options.may_evict = false;
  Decisions choice = NothingGoes(values_), done = choice;
  BudgetFit now = fitter_.Fit(options, &done);
  while (now.over > 0) {
    double best_score = 0;
    BudgetFit best;
    GapId best_gap = -1;
    GapAction best_way = GapAction::kKeep;
    options.max_over = now.over;
    for (GapId gap : gaps) {
      if (choice.ways[At(gap)] != GapAction::kKeep) continue;
      for (const GapAction way : {GapAction::kOffload, GapAction::kRecompute}) {
        if (TimeSpent() > until) return;
        if (!(way == GapAction::kOffload ? fitter_.CanSwap(gap) : fitter_.CanGo(gap))) continue;
        done = choice;
        done.ways[At(gap)] = way;
        const BudgetFit fitted = fitter_.Fit(options, &done);
        if (fitted.over >= now.over) continue;
        const double score = static_cast<double>(now.over - fitted.over) /
                             static_cast<double>(1 + std::max<Nanoseconds>(0, fitted.time - now.time));
        if (score > best_score) best_score = score, best = fitted, best_gap = gap, best_way = way;
      }
    }
    if (best_gap < 0) return;
    choice.ways[At(best_gap)] = best_way;
    now = best;
    for (const Fetching fetching : kAllFetchings) {
      if (!IsFarBehind(fetching)) Begin(choice, {.fetching = fetching});
    }
  }
}

}  // namespace hotpack::remat
