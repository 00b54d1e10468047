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
// resident, if they exceed the budget; with `swap` also that at which most bytes cannot be recomputed. Ascending.
std::vector<OperatorId> Points(const Graph& graph, const Values& values, Bytes budget, int points, bool swap = false) {
  const auto operators = static_cast<OperatorId>(graph.operators.size());
  const std::vector<Bytes> wanted = WantedByOperator(graph, values);
  const std::vector<Bytes> unique = swap ? LeastByOperator(graph, false) : std::vector<Bytes>();
  std::vector<OperatorId> found;
  for (int p = 0; p < points; ++p) {
    const auto begin = static_cast<OperatorId>(int64_t{operators} * p / points),
               end = static_cast<OperatorId>(int64_t{operators} * (p + 1) / points);
    OperatorId best = -1;
    Bytes most = budget;
    for (OperatorId op = begin; op < end; ++op) {
      if (wanted[static_cast<size_t>(op)] > most) most = wanted[static_cast<size_t>(op)], best = op;
    }
    if (best >= 0) found.push_back(best);
    if (unique.empty() || begin == end) continue;
    const auto other =
        static_cast<OperatorId>(std::max_element(unique.begin() + begin, unique.begin() + end) - unique.begin());
    if (other == best || unique[static_cast<size_t>(other)] <= budget) continue;
    found.insert(best > other ? found.end() - 1 : found.end(), other);
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

// The least time of the stretches between points, with copies (bounds.h).
class BoundWithCopies {
 public:
  BoundWithCopies(const Graph& graph, const Values& values, Bytes budget, const BoundOptions& options)
      : graph_(graph), values_(values), budget_(budget), options_(options), order_(graph, values, options.keeps_order) {
    for (const Storage& storage : graph.storages) away_ += storage.away ? storage.bytes : 0;
    if (away_ > 0 && options.keeps_order) FindReturn();
  }

  TimeBound Run(std::vector<OperatorId> points) {
    const Clock clock(options_.time_limit_ns);
    if (returns_after_ >= 0) {
      const auto at = std::lower_bound(points.begin(), points.end(), returns_after_);
      if (at == points.end() || *at != returns_after_) points.insert(at, returns_after_);
    }
    const auto end = static_cast<OperatorId>(graph_.operators.size());
    const size_t count = points.size();
    // By point: the least time from the end of its operator to the end of the step, and up to the end of that operator
    // plus that time.
    std::vector<double> behind(count, 0), whole(count, 0);
    // By point: the least time up to the end of its operator, whatever is wanted behind it.
    std::vector<double> up_to(count, 0);
    std::vector<size_t> next(count, count), next_of_whole(count, count);
    const auto add = [&](size_t i, size_t j, double rest) {
      PointCut cut(graph_, values_, order_, points[i], j == count ? end : points[j]);
      const Stretch stretch = Between(points[i], j == count ? end : points[j]);
      if (j == count) up_to[i] = TimeUpTo(&cut, stretch);
      const double without = Time(&cut, stretch, std::nullopt) + rest;
      if (without > behind[i]) behind[i] = without, next[i] = j;
      const Bytes later = j == count ? 0 : WantedOnlyBehind(points[j]);
      const double time = std::max(Time(&cut, stretch, later) + rest, up_to[i] + without);
      if (time > whole[i]) whole[i] = time, next_of_whole[i] = j;
      if (points[i] != returns_after_) return;
      const double returned = static_cast<double>(returned_) / options_.machine.bytes_per_ns_to_host;
      behind[i] = std::max(behind[i], returned);
      whole[i] = std::max(whole[i], stretch.before + stretch.at + returned);
    };
    for (size_t i = count; i-- > 0 && !clock.IsOver();) add(i, count, 0);
    for (size_t i = count; i-- > 0;) {
      for (size_t j = i + 1; j < count && !clock.IsOver(); ++j) add(i, j, behind[j]);
    }
    TimeBound bound = {TotalCost(graph_), {}};
    const auto best = static_cast<size_t>(std::max_element(whole.begin(), whole.end()) - whole.begin());
    if (count == 0) return bound;
    // Slightly less, since doubles round.
    const auto time = static_cast<Nanoseconds>(whole[best] * (1 - 1e-9)) - 1;
    if (time <= bound.time) return bound;
    bound.time = time;
    for (size_t i = best; i < count; i = i == best ? next_of_whole[i] : next[i]) bound.points.push_back(points[i]);
    return bound;
  }

 private:
  // Costs of operators that certainly run first up to a point without it, at it, and behind it up to the next one.
  struct Stretch {
    double before = 0, at = 0, behind = 0;
    bool is_last = false;
  };

  // State that is changed is copied back to the host: behind the operator that changes the first of it.
  void FindReturn() {
    std::vector<bool> counted(graph_.storages.size());
    for (size_t op = 0; op < graph_.operators.size(); ++op) {
      for (const std::vector<StorageId>* changed : {&graph_.operators[op].updates, &graph_.operators[op].writes}) {
        for (StorageId id : *changed) {
          const Storage& storage = graph_.storages[static_cast<size_t>(id)];
          if (!storage.away || !storage.kept || counted[static_cast<size_t>(id)]) continue;
          counted[static_cast<size_t>(id)] = true;
          returned_ += storage.bytes;
          if (returns_after_ < 0) returns_after_ = static_cast<OperatorId>(op);
        }
      }
    }
  }

  Stretch Between(OperatorId from, OperatorId to) const {
    const std::vector<bool> before = order_.Before(from), behind = order_.Behind(from), by = order_.Before(to);
    Stretch stretch = {.at = static_cast<double>(graph_.operators[static_cast<size_t>(from)].cost)};
    stretch.is_last = static_cast<size_t>(to) == graph_.operators.size();
    for (size_t op = 0; op < before.size(); ++op) {
      const auto cost = static_cast<double>(graph_.operators[op].cost);
      if (before[op]) stretch.before += cost;
      if (behind[op] && by[op]) stretch.behind += cost;
    }
    stretch.before -= stretch.at;
    return stretch;
  }

  // Bytes of given contents that no operator uses up to `point`, and that are wanted behind it. In the program's order.
  Bytes WantedOnlyBehind(OperatorId point) const {
    Bytes bytes = 0;
    if (!options_.keeps_order) return 0;
    for (const Value& value : values_.values) {
      const Storage& storage = graph_.storages[static_cast<size_t>(value.storage)];
      if (value.maker >= 0 || (storage.held && !storage.movable)) continue;  // the latter are resident in any case
      if (value.uses.empty() ? value.left : value.uses.front() > point) bytes += storage.bytes;
    }
    return bytes;
  }

  // Behind the point's operator, up to the end of the stretch. With `later` from the beginning of the step on: bytes
  // that are wanted only behind the stretch. They are resident at the point or away, too, and need not be copied back
  // in the stretch.
  double Time(PointCut* cut, const Stretch& stretch, std::optional<Bytes> later) const {
    const double in = options_.machine.bytes_per_ns_to_device;
    const auto total = static_cast<double>(TotalCost(graph_)), others = static_cast<double>(later.value_or(0));
    return cut->LeastCost(
        budget_ - later.value_or(0),
        [&](double away, double again) {
          const double behind = std::max(stretch.behind + again, (away - others) / in);
          if (!later) return behind;
          const double time = std::max(stretch.before, TimeToLeave(away)) + stretch.at + behind;
          return stretch.is_last ? std::max(time, total + again) : time;
        },
        kRounds);
  }

  // Up to the end of the point's operator, of a stretch up to the end of the step.
  double TimeUpTo(PointCut* cut, const Stretch& stretch) const {
    return cut->LeastCost(
        budget_, [&](double away, double) { return std::max(stretch.before, TimeToLeave(away)) + stretch.at; },
        kRounds);
  }

  // Of bytes that are on the host at a point: those that were not there from the start.
  double TimeToLeave(double away) const {
    return std::max(0.0, away - static_cast<double>(away_)) / options_.machine.bytes_per_ns_to_host;
  }

  static constexpr int kRounds = 12;
  const Graph& graph_;
  const Values& values_;
  const Bytes budget_;
  const BoundOptions& options_;
  const RunOrder order_;
  Bytes away_ = 0;                 // of all storages that begin on the host
  OperatorId returns_after_ = -1;  // the first operator that changes one of them; -1: none does
  Bytes returned_ = 0;             // of those that are changed
};

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
  const std::vector<OperatorId> points = Points(graph, values, budget, options.points, options.swap);
  if (options.swap) return BoundWithCopies(graph, values, budget, options).Run(points);
  const RunOrder order(graph, values, options.keeps_order);
  return WithoutCopies(graph, values, budget, order, options, points);
}

}  // namespace hotpack::remat
