#include <algorithm>
#include <utility>

#include "remat/core/point_cut.h"

namespace hotpack::remat {
namespace {

// A change of a choice that takes bytes and saves time: some operators do not run again.
struct Exchange {
  std::vector<OperatorId> operators;
  bool stops = false;  // the operators run again in the current choice
  Bytes bytes = 0;
  Nanoseconds time = 0;
};

// Computes the exchanges that save the most time within so many bytes, by grains of them. Sizes are rounded to the
// nearest grain.
class Knapsack {
 public:
  Knapsack(const std::vector<Exchange>& exchanges, Bytes room)
      : exchanges_(exchanges), grain_(std::max<Bytes>(room / kGrains, 1)), best_(At(Of(room)) + 1) {
    taken_.assign(exchanges.size(), std::vector<bool>(best_.size()));
    for (size_t i = 0; i < exchanges.size(); ++i) {
      const size_t size = At(Of(exchanges[i].bytes));
      for (size_t space = best_.size(); space-- > size;) {
        const Nanoseconds with = best_[space - size] + exchanges[i].time;
        if (with <= best_[space]) continue;
        best_[space] = with;
        taken_[i][space] = true;
      }
    }
  }

  size_t Spaces() const { return best_.size(); }
  Nanoseconds Saved(size_t space) const { return best_[space]; }
  std::vector<bool> Taken(size_t space) const {
    std::vector<bool> taken(exchanges_.size());
    for (size_t i = exchanges_.size(); i-- > 0;) {
      if (!taken_[i][space]) continue;
      taken[i] = true;
      space -= At(Of(exchanges_[i].bytes));
    }
    return taken;
  }

 private:
  static constexpr Bytes kGrains = 4096;
  int32_t Of(Bytes bytes) const { return static_cast<int32_t>((bytes + grain_ / 2) / grain_); }

  const std::vector<Exchange>& exchanges_;
  const Bytes grain_;
  std::vector<Nanoseconds> best_;         // by grains
  std::vector<std::vector<bool>> taken_;  // by exchange and grains
};

// Whether `a` exceeds the budget by less than `b`, or by as much and takes less time.
bool IsBetter(const PointCut::Corner& a, const PointCut::Corner& b, Bytes budget) {
  const auto score = [budget](const PointCut::Corner& of) {
    return std::pair(std::max<Bytes>(of.bytes - budget, 0), of.time);
  };
  return score(a) < score(b);
}

}  // namespace

// Adds the wanted values, and recursively the operands of reruns.
PointCut::Corner PointCut::CornerOf(const std::vector<bool>& again) const {
  Corner corner = {base_, 0, {}, {}};
  std::vector<bool> seen(values_.values.size()), runs(again.size());
  std::vector<ValueId> open;
  const auto add = [&](ValueId value) {
    if (there_[At(value)] || seen[At(value)]) return;
    seen[At(value)] = true;
    open.push_back(value);
  };
  for (ValueId value : wanted_) add(value);
  while (!open.empty()) {
    const ValueId value = open.back();
    open.pop_back();
    if (IsOnce(value) || !again[At(Of(value).maker)]) {
      corner.bytes += BytesOf(value);
      corner.held.push_back(value);
      continue;
    }
    const OperatorId op = Of(value).maker;
    if (runs[At(op)]) continue;
    runs[At(op)] = true;
    corner.time += graph_.operators[At(op)].cost;
    corner.again.push_back(op);
    for (ValueId input : values_.inputs[At(op)]) add(input);
  }
  std::sort(corner.again.begin(), corner.again.end());
  return corner;
}

// Returns the operator and the operators that its run needs: makers of operands that are neither held nor recomputed.
std::vector<OperatorId> PointCut::RunsFor(OperatorId op, std::vector<bool> again, const std::vector<bool>& held) const {
  std::vector<OperatorId> runs = {op};
  again[At(op)] = true;
  for (size_t i = 0; i < runs.size(); ++i) {
    for (ValueId input : values_.inputs[At(runs[i])]) {
      if (there_[At(input)] || held[At(input)] || IsOnce(input) || again[At(Of(input).maker)]) continue;
      again[At(Of(input).maker)] = true;
      runs.push_back(Of(input).maker);
    }
  }
  return runs;
}

std::optional<PointCut::Corner> PointCut::Exchanged(const Corner& from, Bytes budget) const {
  constexpr int kMaxRounds = 16;
  Corner now = from;
  for (int round = 0; round < kMaxRounds; ++round) {
    std::optional<Corner> better = ExchangedOnce(now, budget);
    if (!better || !IsBetter(*better, now, budget)) break;
    now = *std::move(better);
  }
  return now.bytes <= budget ? std::optional(now) : std::nullopt;
}

std::optional<PointCut::Corner> PointCut::ExchangedOnce(const Corner& now, Bytes budget) const {
  std::vector<bool> again(graph_.operators.size()), held(values_.values.size());
  for (OperatorId op : now.again) again[At(op)] = true;
  for (ValueId value : now.held) held[At(value)] = true;
  std::vector<Exchange> exchanges;
  Bytes room = budget - now.bytes;
  // Adds the exchange with its value by itself, less the value of `than`.
  const auto look = [&](std::vector<OperatorId> operators, bool stops, const Exchange& than) {
    std::vector<bool> changed = again;
    for (OperatorId op : operators) changed[At(op)] = !stops;
    const Corner corner = CornerOf(changed);
    const Bytes bytes = (stops ? corner.bytes - now.bytes : now.bytes - corner.bytes) - than.bytes;
    const Nanoseconds time = (stops ? now.time - corner.time : corner.time - now.time) - than.time;
    if (bytes <= 0 || time < 0) return Exchange();
    if (!stops) room += bytes;
    exchanges.push_back({std::move(operators), stops, bytes, time});
    return exchanges.back();
  };
  for (OperatorId op : now.again) look({op}, true, {});
  std::vector<bool> looked = again;
  for (ValueId value : now.held) {
    if (IsOnce(value) || looked[At(Of(value).maker)]) continue;
    const OperatorId op = Of(value).maker;
    looked[At(op)] = true;
    std::vector<OperatorId> runs = RunsFor(op, again, held);
    const bool alone = runs.size() == 1;
    const Exchange itself = look({op}, false, {});  // with its operands held
    if (!alone) look(std::move(runs), false, itself);
  }
  if (room < 0 || exchanges.empty()) return std::nullopt;
  const Knapsack knapsack(exchanges, room);
  // Together the exchanges may need more than the sum. So choices that save less are tried as well.
  constexpr int kMaxTried = 8;
  std::optional<Corner> best;
  Nanoseconds before = INT64_MAX;
  int tried = 0;
  for (size_t space = knapsack.Spaces(); space-- > 0 && tried < kMaxTried;) {
    if (knapsack.Saved(space) == before) continue;
    before = knapsack.Saved(space);
    ++tried;
    const std::vector<bool> taken = knapsack.Taken(space);
    std::vector<bool> changed = again;
    for (size_t i = 0; i < exchanges.size(); ++i) {
      if (taken[i] != exchanges[i].stops) continue;
      for (OperatorId op : exchanges[i].operators) changed[At(op)] = !exchanges[i].stops;
    }
    Corner corner = CornerOf(changed);
    if (!best || IsBetter(corner, *best, budget)) best = std::move(corner);
  }
  return best;
}

}  // namespace hotpack::remat
