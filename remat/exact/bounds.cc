#include "remat/exact/bounds.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "absl/strings/str_cat.h"
#include "remat/core/load.h"
#include "remat/core/point_cut.h"

namespace hotpack::remat {
namespace {

// Most branches times operators: seconds.
constexpr int64_t kBranchedOperators = 40'000;

// Divides the program into `points` stretches. Returns for each the operator at which most bytes are wanted or
// resident, if they exceed the budget.
std::vector<OperatorId> Points(const Graph& graph, const Values& values, Bytes budget, int points) {
  const auto operators = static_cast<OperatorId>(graph.operators.size());
  std::vector<Bytes> load(static_cast<size_t>(operators) + 1);
  for (const Value& value : values.values) {
    const OperatorId last = value.left ? operators - 1 : value.uses.empty() ? value.maker : value.uses.back();
    if (last < 0) continue;
    load[static_cast<size_t>(std::max(value.maker, 0))] += graph.storages[static_cast<size_t>(value.storage)].bytes;
    load[static_cast<size_t>(last) + 1] -= graph.storages[static_cast<size_t>(value.storage)].bytes;
  }
  for (size_t i = 1; i < load.size(); ++i) load[i] += load[i - 1];
  std::vector<OperatorId> found;
  for (int p = 0; p < points; ++p) {
    const auto begin = static_cast<OperatorId>(int64_t{operators} * p / points),
               end = static_cast<OperatorId>(int64_t{operators} * (p + 1) / points);
    OperatorId best = -1;
    Bytes most = budget;
    for (OperatorId op = begin; op < end; ++op) {
      const Bytes here = load[static_cast<size_t>(op)] + graph.operators[static_cast<size_t>(op)].workspace;
      if (here > most) most = here, best = op;
    }
    if (best >= 0) found.push_back(best);
  }
  return found;
}

absl::Status NoPlan(Bytes budget, Bytes least, bool keeps_order) {
  return absl::ResourceExhaustedError(absl::StrCat("a budget of ", budget, " bytes: every plan",
                                                   keeps_order ? " in the program's order" : "", " needs at least ",
                                                   least));
}

class Clock {
 public:
  explicit Clock(int64_t limit_ns) : limit_ns_(limit_ns), begin_(std::chrono::steady_clock::now()) {}
  bool IsOver() const {
    return std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin_).count() > limit_ns_;
  }

 private:
  const int64_t limit_ns_;
  const std::chrono::steady_clock::time_point begin_;
};

// Returns the largest sum of bounds over disjoint stretches between points.
absl::StatusOr<TimeBound> WithoutCopies(const Graph& graph, const Values& values, Bytes budget, const RunOrder& order,
                                        const BoundOptions& options, const std::vector<OperatorId>& points) {
  const Clock clock(options.time_limit_ns);
  const auto end = static_cast<OperatorId>(graph.operators.size());
  std::vector<Nanoseconds> best(points.size());  // sum from the point on
  std::vector<size_t> next(points.size(), points.size());
  for (size_t i = 0; i < points.size() && !clock.IsOver(); ++i) {
    PointCut cut(graph, values, order, points[i], end);
    const std::optional<Nanoseconds> time = cut.Time(budget);
    if (!time) return NoPlan(budget, cut.LeastBytes(), options.keeps_order);
    best[i] = *time;
  }
  for (size_t i = points.size(); i-- > 0;) {
    for (size_t j = i + 1; j < points.size() && !clock.IsOver(); ++j) {
      // Values wanted up to points[j] are wanted up to the end, so the cut is possible. No value is wanted if
      // points[j] may run before points[i].
      const Nanoseconds sum = *PointCut(graph, values, order, points[i], points[j]).Time(budget) + best[j];
      if (sum > best[i]) best[i] = sum, next[i] = j;
    }
  }
  TimeBound bound = {TotalCost(graph), {}};
  if (points.empty()) return bound;
  // Bounds the stretches of the best sum once more, without relaxation.
  const int branches =
      static_cast<int>(std::min<int64_t>(options.branches, kBranchedOperators / std::max<int64_t>(end, 1)));
  for (auto i = static_cast<size_t>(std::max_element(best.begin(), best.end()) - best.begin()); i < points.size();
       i = next[i]) {
    const bool last = next[i] == points.size();
    const Nanoseconds relaxed = best[i] - (last ? 0 : best[next[i]]);
    if (relaxed == 0) continue;
    const std::optional<Nanoseconds> whole =
        clock.IsOver()
            ? std::nullopt
            : PointCut(graph, values, order, points[i], last ? end : points[next[i]]).TimeWhole(budget, branches);
    bound.time += whole.value_or(relaxed);
    bound.points.push_back(points[i]);
  }
  return bound;
}

// Times of copies at a cut. `first`: the time up to the end of the cut's operator. `own`: that operator's time.
struct Copies {
  Nanoseconds first = 0, own = 0;
  Machine machine;

  // Returns a bound on the step's time if so many bytes are absent at the cut. It is slightly low, because the
  // simulator rounds each copy up and doubles do not.
  Nanoseconds Time(Bytes away) const {
    const double back = static_cast<double>(away) / machine.bytes_per_ns_to_device;
    const double out = static_cast<double>(away) / machine.bytes_per_ns_to_host;
    return static_cast<Nanoseconds>(std::max(static_cast<double>(first) + back, static_cast<double>(own) + back + out) *
                                    (1 - 1e-12));
  }
};

// Returns the best bound with copies, if it is above `known`. With fewer than `away` bytes absent the cut takes no less
// time. With more the copies take no less. So for each `away` the lesser of both is a bound.
Nanoseconds WithCopies(const Graph& graph, PointCut* cut, Bytes budget, const Copies& copies, Nanoseconds known) {
  const Nanoseconds total = TotalCost(graph);
  Nanoseconds best = known;
  Bytes few = 0, many = std::max<Bytes>(cut->AllHeld() - budget, 0);
  while (few < many) {
    // Finds the first one whose copies take more than `known`. No better bound is below it.
    Bytes low = few, high = many;
    while (low < high) {
      const Bytes middle = low + (high - low) / 2;
      if (copies.Time(middle) > best) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    if (low >= many) break;
    const Bytes away = low + (many - low) / 2;
    const std::optional<Nanoseconds> again = cut->Time(budget + away);
    const Nanoseconds copied = copies.Time(away);
    best = std::max(best, again ? std::min(total + *again, copied) : copied);
    if (!again || total + *again > copied) {
      few = away + 1;
    } else {
      many = away;
    }
  }
  return best;
}

}  // namespace

Bytes LeastBytes(const Graph& graph, const Values& values, const BoundOptions& options) {
  const RunOrder order(graph, values, options.keeps_order);
  Bytes most = LeastMemory(graph, options.swap);
  if (options.swap) return most;
  for (OperatorId point : Points(graph, values, 0, options.points)) {
    PointCut cut(graph, values, order, point, static_cast<OperatorId>(graph.operators.size()));
    most = std::max(most, cut.LeastBytes());
  }
  return most;
}

absl::StatusOr<TimeBound> LeastTime(const Graph& graph, const Values& values, Bytes budget,
                                    const BoundOptions& options) {
  if (const Bytes least = LeastMemory(graph, options.swap); budget < least) return NoPlan(budget, least, false);
  const RunOrder order(graph, values, options.keeps_order);
  const std::vector<OperatorId> points = Points(graph, values, budget, options.points);
  if (!options.swap) return WithoutCopies(graph, values, budget, order, options, points);
  const Clock clock(options.time_limit_ns);
  TimeBound bound = {TotalCost(graph), {}};
  for (size_t i = 0; i < points.size() && !clock.IsOver(); ++i) {
    PointCut cut(graph, values, order, points[i], static_cast<OperatorId>(graph.operators.size()));
    Copies copies = {0, graph.operators[static_cast<size_t>(points[i])].cost, options.machine};
    const std::vector<bool> before = order.Before(points[i]);
    for (size_t op = 0; op < before.size(); ++op) copies.first += before[op] ? graph.operators[op].cost : 0;
    const Nanoseconds time = WithCopies(graph, &cut, budget, copies, bound.time);
    if (time > bound.time) bound = {time, {points[i]}};
  }
  return bound;
}

}  // namespace hotpack::remat
