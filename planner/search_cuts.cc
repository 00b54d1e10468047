#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>

#include "planner/search_state.h"

namespace hotpack::planner {
namespace {

size_t At(int32_t id) { return static_cast<size_t>(id); }

// The operators up to one, in stretches.
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

  // What goes from one stretch to the next. Each begins where least goes over, a quarter of one around where its share of the bytes does.
  std::vector<ValueId> Crossing(int count) const {
    std::vector<OperatorId> cuts;
    const double share = static_cast<double>(made_.back()) / count;
    for (int i = 1; i < count; ++i) {
      const auto at = [&](double bytes) { return std::lower_bound(made_.begin(), made_.end(), static_cast<Bytes>(bytes)) - made_.begin(); };
      const auto from = std::clamp<std::ptrdiff_t>(at(share * (i - 0.25)), 1, end_), to = std::clamp<std::ptrdiff_t>(at(share * (i + 0.25)), from, end_);
      cuts.push_back(static_cast<OperatorId>(std::min_element(over_.begin() + from, over_.begin() + to + 1) - over_.begin()));
    }
    std::vector<ValueId> crossing;
    for (size_t v = 0; v < last_.size(); ++v) {
      const auto cut = std::upper_bound(cuts.begin(), cuts.end(), values_.values[v].maker);
      if (last_[v] >= 0 && cut != cuts.end() && *cut <= last_[v]) crossing.push_back(static_cast<ValueId>(v));
    }
    return crossing;
  }

 private:
  const Values& values_;
  const OperatorId end_;
  std::vector<OperatorId> last_;     // by value: use among them
  std::vector<Bytes> over_, made_;   // by operator: bytes that go from before it to it and behind, and bytes made before it
};

}  // namespace

void Search::State::BeginByCuts() {
  const auto end = static_cast<OperatorId>(graph_.operators.size());
  const auto is_forward = [](const Operator& op) { return op.phase == Phase::kForward; };
  const auto passes = static_cast<OperatorId>(std::find_if_not(graph_.operators.begin(), graph_.operators.end(), is_forward) - graph_.operators.begin());
  // Where the backward pass begins, and where most is wanted behind.
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
  constexpr double kShare = 0.2;  // of the time
  const double until = Elapsed() + kShare;
  const Stretches stretches(graph_, values_, at);
  const PointCut plain(graph_, values_, RunOrder(graph_, values_, true), at, static_cast<OperatorId>(graph_.operators.size()));
  std::map<int, CutPlan> plans;  // by count of stretches
  const auto add = [&](int count) {
    if (count < 1 || plans.contains(count) || (Elapsed() > until && !plans.empty())) return;
    PointCut cut = plain;
    const std::vector<ValueId> crossing = stretches.Crossing(count);
    cut.Hold(crossing);
    plans[count] = BestOf(&cut, crossing, at);
  };
  const auto best = [&] {
    return std::min_element(plans.begin(), plans.end(), [](const auto& a, const auto& b) { return a.second.score < b.second.score; });
  };
  for (const int count : {1, 8, 16, 4, 32, 64, 128, 2, 12, 24, 6, 48, 3, 96, 192}) add(count);
  for (int by : {4, 8, 16}) {  // parts of it
    const int count = best()->first;
    add(count - std::max(count / by, 1));
    add(count + std::max(count / by, 1));
  }
  constexpr int kMostTried = 8, kLeastTried = 4;
  for (int i = 0; i < kMostTried && !plans.empty() && (i < kLeastTried || !best_.fits); ++i) {
    const auto plan = best();
    Begin(plan->second.fits, {});
    if (plan->second.score.first == 0) Begin(plan->second.above, {});
    plans.erase(plan);
  }
}

// Of the hull's corners the one that fits with the most bytes held, and the next.
Search::State::CutPlan Search::State::BestOf(PointCut* cut, const std::vector<ValueId>& crossing, OperatorId at) {
  FitOptions options;
  options.budget = options_->budget;
  options.mends = false;
  CutPlan plan;
  const auto fits = [&](const PointCut::Corner& corner) {
    Decisions decisions = DecisionsOf(corner, crossing, at), done = decisions;
    const Fitted fitted = fitter_.Fit(options, &done);
    if (fitted.fits || plan.fits.ways.empty()) plan.score = {fitted.over, fitted.time};
    (fitted.fits ? plan.fits : plan.above) = std::move(decisions);
    return fitted.fits;
  };
  PointCut::Corner above = cut->Fastest(), below = cut->Smallest();
  if (!fits(below)) {
    plan.fits = plan.above;
    return plan;
  }
  plan.above = plan.fits;
  for (;;) {
    std::optional<PointCut::Corner> corner = cut->Between(above, below);
    if (!corner) return plan;
    (fits(*corner) ? below : above) = *std::move(corner);
  }
}

Decisions Search::State::DecisionsOf(const PointCut::Corner& corner, const std::vector<ValueId>& crossing, OperatorId at) {
  Decisions decisions = NothingGoes(values_);
  for (OperatorId op : corner.again) {
    for (ValueId output : values_.outputs[At(op)]) {
      const Value& of = values_.values[At(output)];
      for (GapId g = of.first_gap; g < of.first_gap + values_.GapsOf(output); ++g) {
        const Gap& gap = values_.gaps[At(g)];
        if (gap.after <= at && at < gap.before && fitter_.CanGo(g)) decisions.ways[At(g)] = Way::kAgain;
      }
    }
  }
  for (const std::vector<ValueId>* held : {&corner.held, &crossing}) {
    for (ValueId value : *held) {
      const Value& of = values_.values[At(value)];
      if (of.left || of.maker < 0 || (!of.uses.empty() && of.uses.back() > at)) continue;
      decisions.tails[At(value)] = std::min<OperatorId>(of.overwritten - 1, static_cast<OperatorId>(graph_.operators.size()) - 1);
    }
  }
  FitOptions options;
  options.budget = options_->budget;
  options.mends = false;
  fitter_.Fit(options, &decisions);  // they stay as long as they help
  return decisions;
}

}  // namespace hotpack::planner
