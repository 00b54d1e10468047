#include "remat/exact/knapsack.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "remat/chen/segments.h"
#include "remat/core/schedule_builder.h"

namespace hotpack::remat {
namespace {

struct Item {
  OperatorId op;
  Bytes bytes;  // of its results that the backward pass uses
  Nanoseconds cost;
};

std::vector<Item> ItemsOf(const Graph& graph, const Values& values) {
  std::vector<Item> items;
  for (size_t i = 0; i < graph.operators.size(); ++i) {
    const Operator& op = graph.operators[i];
    if (op.phase != Phase::kForward) continue;
    Item item = {static_cast<OperatorId>(i), 0, op.cost};
    bool used = false;
    for (ValueId output : values.outputs[i]) {
      const Value& value = values.values[static_cast<size_t>(output)];
      const bool behind = std::any_of(value.uses.begin(), value.uses.end(), [&](OperatorId use) {
        return graph.operators[static_cast<size_t>(use)].phase != Phase::kForward;
      });
      if (!behind) continue;
      used = true;
      item.bytes += graph.storages[static_cast<size_t>(value.storage)].bytes;
    }
    if (used) items.push_back(item);
  }
  return items;
}

// Returns by item whether it is saved. Sizes in grains are rounded up, so the saved items fit.
std::vector<bool> ByDynamicProgramming(const std::vector<Item>& items, Bytes capacity, Bytes all, int grains) {
  const Bytes grain = std::max<Bytes>((all + grains - 1) / grains, 1);
  const auto room = static_cast<size_t>(capacity / grain);
  std::vector<Nanoseconds> best(room + 1);
  std::vector<std::vector<bool>> taken(items.size(), std::vector<bool>(room + 1));
  const auto size = [&](size_t i) { return static_cast<size_t>((items[i].bytes + grain - 1) / grain); };
  for (size_t i = 0; i < items.size(); ++i) {
    for (size_t space = room + 1; space-- > size(i);) {
      const Nanoseconds with = best[space - size(i)] + items[i].cost;
      if (with < best[space] || (with == best[space] && items[i].bytes > 0)) continue;
      best[space] = with;
      taken[i][space] = true;
    }
  }
  std::vector<bool> saved(items.size());
  for (size_t i = items.size(), space = room; i-- > 0;) {
    if (!taken[i][space]) continue;
    saved[i] = true;
    space -= size(i);
  }
  return saved;
}

std::vector<bool> ByTimeForBytes(const std::vector<Item>& items, Bytes capacity) {
  std::vector<size_t> order(items.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto worth = [&](size_t i) {
    return static_cast<double>(items[i].cost) / static_cast<double>(std::max<Bytes>(items[i].bytes, 1));
  };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return worth(a) > worth(b); });
  std::vector<bool> saved(items.size());
  for (size_t i : order) {
    if (items[i].bytes > capacity) continue;
    capacity -= items[i].bytes;
    saved[i] = true;
  }
  return saved;
}

}  // namespace

SavedResults SaveResults(const Graph& graph, const Values& values, double share, const KnapsackOptions& options) {
  SavedResults result;
  result.again.resize(graph.operators.size());
  for (size_t i = 0; i < graph.operators.size(); ++i) {
    result.again[i] = graph.operators[i].phase == Phase::kForward && !graph.operators[i].once;
  }
  std::vector<Item> items = ItemsOf(graph, values);
  for (const Item& item : items) result.all += item.bytes;
  const auto capacity = static_cast<Bytes>(std::clamp(share, 0.0, 1.0) * static_cast<double>(result.all));
  std::erase_if(items, [&](const Item& item) {
    if (result.again[static_cast<size_t>(item.op)]) return false;
    result.bytes += item.bytes;
    return true;
  });
  const Bytes left = std::max<Bytes>(capacity - result.bytes, 0);
  const std::vector<bool> saved = options.greedy || share >= 1
                                      ? ByTimeForBytes(items, left)
                                      : ByDynamicProgramming(items, left, result.all, options.grains);
  for (size_t i = 0; i < items.size(); ++i) {
    if (saved[i]) {
      result.again[static_cast<size_t>(items[i].op)] = false;
      result.bytes += items[i].bytes;
    } else {
      result.time_again += items[i].cost;
    }
  }
  return result;
}

Schedule ScheduleOf(const Graph& graph, const Values& values, const SavedResults& saved, const Machine& machine) {
  return BuildSchedule(graph, values, DropForward(graph, values, saved.again), machine, &saved.again).schedule;
}

absl::StatusOr<Schedule> ScheduleByKnapsack(const Graph& graph, const Values& values, Bytes budget,
                                            const KnapsackOptions& options) {
  std::optional<Schedule> best;
  Nanoseconds best_time = 0;
  double best_share = 0;
  Bytes least = INT64_MAX;
  // Tries a share and returns whether its plan fits.
  const auto attempt = [&](double share) {
    Schedule schedule = ScheduleOf(graph, values, SaveResults(graph, values, share, options), options.machine);
    const absl::StatusOr<Outcome> outcome = Simulate(graph, schedule, options.machine);
    if (!outcome.ok()) return false;
    least = std::min(least, outcome->live_peak);
    if (outcome->live_peak > budget) return false;
    if (!best || outcome->time < best_time) best = std::move(schedule), best_time = outcome->time, best_share = share;
    return true;
  };
  const double step = 1.0 / std::max(options.shares, 1);
  for (int i = std::max(options.shares, 1); i >= 0; --i) attempt(i * step);
  if (!best)
    return absl::ResourceExhaustedError(
        absl::StrCat("no share fits ", budget, " bytes; the least found needs ", least));
  double fits = best_share, above = std::min(best_share + step, 1.0);
  for (int i = 0; i < 6 && fits < above; ++i) {
    const double middle = (fits + above) / 2;
    (attempt(middle) ? fits : above) = middle;
  }
  return *std::move(best);
}

}  // namespace hotpack::remat
