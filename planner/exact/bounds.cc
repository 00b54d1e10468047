#include "planner/exact/bounds.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "absl/strings/str_cat.h"
#include "planner/descent.h"
#include "planner/exact/cut.h"

namespace hotpack::planner {
namespace {

// What a choice at a cut takes: a corner of the lower hull, when it is one.
struct Corner {
  Bytes bytes = 0;
  Nanoseconds time = 0;
};

// Which operators have surely run when one first runs, and which surely not.
class Order {
 public:
  Order(const Graph& graph, const Values& values, bool keeps_order) : graph_(graph), values_(values), keeps_order_(keeps_order) {}

  // By operator: it has run when `op` first runs, or is it. `op` may be the number of operators: the end.
  std::vector<bool> Before(OperatorId op) const {
    const size_t count = graph_.operators.size();
    std::vector<bool> before(count);
    if (keeps_order_ || static_cast<size_t>(op) == count) {
      std::fill(before.begin(), before.begin() + std::min<std::ptrdiff_t>(op + 1, static_cast<std::ptrdiff_t>(count)), true);
      return before;
    }
    before[static_cast<size_t>(op)] = true;
    for (OperatorId i = op; i >= 0; --i) {
      if (!before[static_cast<size_t>(i)]) continue;
      for (ValueId input : values_.inputs[static_cast<size_t>(i)]) {
        if (const OperatorId maker = MakerOf(input); maker >= 0) before[static_cast<size_t>(maker)] = true;
      }
    }
    return before;
  }
  // By operator: it first runs after `op` does.
  std::vector<bool> Behind(OperatorId op) const {
    const size_t count = graph_.operators.size();
    std::vector<bool> behind(count);
    for (size_t i = static_cast<size_t>(op) + 1; i < count; ++i) {
      const std::vector<ValueId>& inputs = values_.inputs[i];
      behind[i] = keeps_order_ || std::any_of(inputs.begin(), inputs.end(), [&](ValueId input) {
        const OperatorId maker = MakerOf(input);
        return maker == op || (maker > op && behind[static_cast<size_t>(maker)]);
      });
    }
    return behind;
  }

 private:
  OperatorId MakerOf(ValueId value) const { return values_.values[static_cast<size_t>(value)].maker; }

  const Graph& graph_;
  const Values& values_;
  const bool keeps_order_;
};

// The cut at operator `at`, for what is wanted by operators that first run behind it and no later than `until`.
class Cut {
 public:
  Cut(const Graph& graph, const Values& values, const Order& order, OperatorId at, OperatorId until)
      : graph_(graph), values_(values), there_(values.values.size()), node_(values.values.size(), -1) {
    before_ = order.Before(at);
    const std::vector<bool> behind = order.Behind(at), by_then = order.Before(until);
    const bool to_the_end = static_cast<size_t>(until) == graph.operators.size();
    base_ = graph.operators[static_cast<size_t>(at)].workspace;
    AddThere(at);
    for (size_t v = 0; v < values.values.size(); ++v) {
      const Value& value = values.values[v];
      if (there_[v] || (value.maker >= 0 && !before_[static_cast<size_t>(value.maker)])) continue;
      const bool wanted = (to_the_end && value.left) || std::any_of(value.uses.begin(), value.uses.end(), [&](OperatorId use) {
        return behind[static_cast<size_t>(use)] && by_then[static_cast<size_t>(use)];
      });
      if (wanted) wanted_.push_back(static_cast<ValueId>(v));
    }
    all_ = {base_, 0};
    for (ValueId value : wanted_) all_.bytes += BytesOf(value);
  }

  // With everything held.
  const Corner& all() const { return all_; }

  // The least bytes, and the least time with them.
  const Corner& least() {
    if (!least_) {
      Nanoseconds most = 1;
      for (const Operator& op : graph_.operators) most += op.cost;
      least_ = Solve(1, most);
    }
    return *least_;
  }

  // The relaxation's optimum, rounded up (times are integers); nothing if the budget is below least().bytes.
  std::optional<Nanoseconds> Time(Bytes budget) {
    if (all_.bytes <= budget) return 0;
    if (least().bytes > budget) return std::nullopt;
    Corner above = all_, below = least();  // of the budget
    for (;;) {
      const Wide bytes = above.bytes - below.bytes, time = below.time - above.time;
      if (time == 0) return below.time;
      const Corner corner = Solve(bytes, time);
      if (bytes * corner.time + time * corner.bytes >= bytes * above.time + time * above.bytes) {
        const Wide over = time * (above.bytes - budget);
        return above.time + static_cast<Nanoseconds>((over + bytes - 1) / bytes);
      }
      (corner.bytes > budget ? above : below) = corner;
    }
  }

 private:
  const Value& Of(ValueId value) const { return values_.values[static_cast<size_t>(value)]; }
  Bytes BytesOf(ValueId value) const { return graph_.storages[static_cast<size_t>(Of(value).storage)].bytes; }
  // Never made again.
  bool IsOnce(ValueId value) const { return Of(value).maker < 0 || graph_.operators[static_cast<size_t>(Of(value).maker)].once; }

  // While `at` runs: its results, and what it reads but for what it may take over.
  void AddThere(OperatorId at) {
    const Operator& op = graph_.operators[static_cast<size_t>(at)];
    const auto add = [this](ValueId value) {
      there_[static_cast<size_t>(value)] = true;
      base_ += BytesOf(value);
    };
    for (size_t i = 0; i < op.reads.size(); ++i) {
      const StorageId id = op.reads[i];
      const bool may_go = std::any_of(op.in_place.begin(), op.in_place.end(), [id](const InPlace& pair) { return pair.read == id; });
      if (!may_go) add(values_.inputs[static_cast<size_t>(at)][i]);
    }
    for (ValueId output : values_.outputs[static_cast<size_t>(at)]) add(output);
  }

  // The choice that is least in per_time · time + per_byte · bytes.
  //   source ─∞► v (wanted) ─per_byte · bytes_v► o = maker(v) ─per_time · cost_o► sink,  o ─∞► what o uses
  // A node is on the source's side if the value is wanted, or the operator runs again; an arc v ► o is cut where v is held.
  Corner Solve(Wide per_time, Wide per_byte) {
    Network network;
    std::vector<int32_t> run(graph_.operators.size(), -1);
    std::vector<ValueId> open;
    std::fill(node_.begin(), node_.end(), -1);
    const auto node_of = [&](ValueId value) {
      int32_t& node = node_[static_cast<size_t>(value)];
      if (node < 0) node = network.AddNode(), open.push_back(value);
      return node;
    };
    for (ValueId value : wanted_) network.AddArc(Network::kSource, node_of(value), kUncut);
    std::vector<ValueId> values;
    while (!open.empty()) {
      const ValueId value = open.back();
      open.pop_back();
      values.push_back(value);
      int32_t to = Network::kSink;
      if (!IsOnce(value)) {
        const auto maker = static_cast<size_t>(Of(value).maker);
        if (run[maker] < 0) {
          run[maker] = network.AddNode();
          network.AddArc(run[maker], Network::kSink, per_time * graph_.operators[maker].cost);
          for (ValueId input : values_.inputs[maker]) {
            if (!there_[static_cast<size_t>(input)]) network.AddArc(run[maker], node_of(input), kUncut);
          }
        }
        to = run[maker];
      }
      network.AddArc(node_[static_cast<size_t>(value)], to, per_byte * BytesOf(value));
    }
    network.Cut();
    Corner corner = {base_, 0};
    for (size_t op = 0; op < run.size(); ++op) {
      if (run[op] >= 0 && network.OnSourceSide(run[op])) corner.time += graph_.operators[op].cost;
    }
    for (ValueId value : values) {
      const bool made = !IsOnce(value) && network.OnSourceSide(run[static_cast<size_t>(Of(value).maker)]);
      if (network.OnSourceSide(node_[static_cast<size_t>(value)]) && !made) corner.bytes += BytesOf(value);
    }
    return corner;
  }

  const Graph& graph_;
  const Values& values_;
  std::vector<bool> before_;     // by operator
  std::vector<bool> there_;      // by value
  std::vector<int32_t> node_;    // by value, of Solve()
  std::vector<ValueId> wanted_;  // but those that are there
  Bytes base_ = 0;
  Corner all_;
  std::optional<Corner> least_;
};

// In each of as many stretches of the program the operator at which most is wanted or there, if it is more than the budget.
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
    const auto begin = static_cast<OperatorId>(int64_t{operators} * p / points), end = static_cast<OperatorId>(int64_t{operators} * (p + 1) / points);
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
  return absl::ResourceExhaustedError(absl::StrCat("a budget of ", budget, " bytes: every plan", keeps_order ? " in the program's order" : "",
                                                   " needs at least ", least));
}

class Clock {
 public:
  explicit Clock(int64_t limit_ns) : limit_ns_(limit_ns), begin_(std::chrono::steady_clock::now()) {}
  bool IsOver() const { return std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin_).count() > limit_ns_; }

 private:
  const int64_t limit_ns_;
  const std::chrono::steady_clock::time_point begin_;
};

// The most that disjoint stretches between points add up to.
absl::StatusOr<TimeBound> WithoutCopies(const Graph& graph, const Values& values, Bytes budget, const Order& order, const BoundOptions& options,
                                        const std::vector<OperatorId>& points) {
  const Clock clock(options.time_limit_ns);
  const auto end = static_cast<OperatorId>(graph.operators.size());
  std::vector<Nanoseconds> best(points.size());  // from the point on
  std::vector<size_t> next(points.size(), points.size());
  for (size_t i = 0; i < points.size() && !clock.IsOver(); ++i) {
    Cut cut(graph, values, order, points[i], end);
    const std::optional<Nanoseconds> time = cut.Time(budget);
    if (!time) return NoPlan(budget, cut.least().bytes, options.keeps_order);
    best[i] = *time;
  }
  for (size_t i = points.size(); i-- > 0;) {
    const std::vector<bool> behind = order.Behind(points[i]);
    for (size_t j = i + 1; j < points.size() && !clock.IsOver(); ++j) {
      if (!behind[static_cast<size_t>(points[j])]) continue;
      // What is wanted up to there is wanted up to the end: so the cut can be made.
      const Nanoseconds sum = *Cut(graph, values, order, points[i], points[j]).Time(budget) + best[j];
      if (sum > best[i]) best[i] = sum, next[i] = j;
    }
  }
  TimeBound bound = {TotalCost(graph), {}};
  const auto from = std::max_element(best.begin(), best.end());
  if (from == best.end() || *from == 0) return bound;
  bound.time += *from;
  for (auto i = static_cast<size_t>(from - best.begin()); i < points.size() && best[i] > 0; i = next[i]) {
    if (next[i] == points.size() || best[i] > best[next[i]]) bound.points.push_back(points[i]);
  }
  return bound;
}

// With copies: `first` is the time up to the end of the cut's operator, `own` that operator's.
struct Copies {
  Nanoseconds first = 0, own = 0;
  Machine machine;

  // Of the step, if so many bytes are away at the cut. A little less than that: the simulator rounds each copy up, doubles do not.
  Nanoseconds Time(Bytes away) const {
    const double back = static_cast<double>(away) / machine.bytes_per_ns_to_device;
    const double out = static_cast<double>(away) / machine.bytes_per_ns_to_host;
    return static_cast<Nanoseconds>(std::max(static_cast<double>(first) + back, static_cast<double>(own) + back + out) * (1 - 1e-12));
  }
};

// With fewer bytes away than `away` the cut takes no less than with so many, with more away the copies take no less: so for each
// `away` the lesser of both is a bound. The best of them, if it is above `known`.
Nanoseconds WithCopies(const Graph& graph, Cut* cut, Bytes budget, const Copies& copies, Nanoseconds known) {
  const Nanoseconds total = TotalCost(graph);
  Nanoseconds best = known;
  Bytes few = 0, many = std::max<Bytes>(cut->all().bytes - budget, 0);
  while (few < many) {
    // The first one whose copies take more than what is known: below it nothing better is to be found.
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
  const Order order(graph, values, options.keeps_order);
  Bytes most = LeastMemory(graph, options.swap);
  if (options.swap) return most;
  for (OperatorId point : Points(graph, values, 0, options.points)) {
    Cut cut(graph, values, order, point, static_cast<OperatorId>(graph.operators.size()));
    most = std::max(most, cut.least().bytes);
  }
  return most;
}

absl::StatusOr<TimeBound> LeastTime(const Graph& graph, const Values& values, Bytes budget, const BoundOptions& options) {
  if (const Bytes least = LeastMemory(graph, options.swap); budget < least) return NoPlan(budget, least, false);
  const Order order(graph, values, options.keeps_order);
  const std::vector<OperatorId> points = Points(graph, values, budget, options.points);
  if (!options.swap) return WithoutCopies(graph, values, budget, order, options, points);
  const Clock clock(options.time_limit_ns);
  TimeBound bound = {TotalCost(graph), {}};
  for (size_t i = 0; i < points.size() && !clock.IsOver(); ++i) {
    Cut cut(graph, values, order, points[i], static_cast<OperatorId>(graph.operators.size()));
    Copies copies = {0, graph.operators[static_cast<size_t>(points[i])].cost, options.machine};
    const std::vector<bool> before = order.Before(points[i]);
    for (size_t op = 0; op < before.size(); ++op) copies.first += before[op] ? graph.operators[op].cost : 0;
    const Nanoseconds time = WithCopies(graph, &cut, budget, copies, bound.time);
    if (time > bound.time) bound = {time, {points[i]}};
  }
  return bound;
}

}  // namespace hotpack::planner
