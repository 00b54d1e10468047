#include "remat/core/point_cut.h"

#include <algorithm>
#include <queue>
#include <utility>

namespace hotpack::remat {

std::vector<bool> RunOrder::Before(OperatorId op) const {
  const size_t count = graph_.operators.size();
  std::vector<bool> before(count);
  if (keeps_order_ || static_cast<size_t>(op) == count) {
    std::fill(before.begin(), before.begin() + std::min<std::ptrdiff_t>(op + 1, static_cast<std::ptrdiff_t>(count)),
              true);
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

std::vector<bool> RunOrder::Behind(OperatorId op) const {
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

PointCut::PointCut(const Graph& graph, const Values& values, const RunOrder& order, OperatorId at, OperatorId until)
    : graph_(graph),
      values_(values),
      keeps_order_(order.keeps_order()),
      there_(values.values.size()),
      fixed_(graph.operators.size(), Fixed::kFree),
      node_(values.values.size()) {
  const std::vector<bool> before = order.Before(at), behind = order.Behind(at), by_then = order.Before(until);
  const bool to_the_end = static_cast<size_t>(until) == graph.operators.size();
  base_ = graph.operators[static_cast<size_t>(at)].workspace;
  AddThere(at);
  if (keeps_order_) AddHeld(at);
  all_ = base_;
  for (size_t v = 0; v < values.values.size(); ++v) {
    const Value& value = values.values[v];
    if (there_[v] || (value.maker >= 0 && !before[static_cast<size_t>(value.maker)])) continue;
    const bool wanted =
        (to_the_end && value.left) || std::any_of(value.uses.begin(), value.uses.end(), [&](OperatorId use) {
          return behind[static_cast<size_t>(use)] && by_then[static_cast<size_t>(use)];
        });
    if (!wanted) continue;
    wanted_.push_back(static_cast<ValueId>(v));
    all_ += BytesOf(static_cast<ValueId>(v));
  }
  total_ = TotalCost(graph) + 1;
}

// Adds the values that are resident while `at` runs: its results, and its operands except those that it may take over.
void PointCut::AddThere(OperatorId at) {
  const Operator& op = graph_.operators[static_cast<size_t>(at)];
  const auto add = [this](ValueId value) {
    there_[static_cast<size_t>(value)] = true;
    base_ += BytesOf(value);
  };
  for (size_t i = 0; i < op.reads.size(); ++i) {
    const StorageId id = op.reads[i];
    const bool may_go =
        std::any_of(op.in_place.begin(), op.in_place.end(), [id](const InPlace& pair) { return pair.read == id; });
    if (!may_go) add(values_.inputs[static_cast<size_t>(at)][i]);
  }
  for (ValueId output : values_.outputs[static_cast<size_t>(at)]) add(output);
}

// Adds the values that the program itself holds when `at` runs, if first runs are in its order.
void PointCut::AddHeld(OperatorId at) {
  for (size_t v = 0; v < values_.values.size(); ++v) {
    const Value& value = values_.values[v];
    const Storage& storage = graph_.storages[static_cast<size_t>(value.storage)];
    if (there_[v] || !storage.held || storage.movable || value.maker >= at || value.overwritten <= at) continue;
    if (!value.left && (value.uses.empty() || value.uses.back() <= at)) continue;
    there_[v] = true;
    base_ += storage.bytes;
  }
}

void PointCut::Hold(const std::vector<ValueId>& values) {
  for (ValueId value : values) {
    if (there_[static_cast<size_t>(value)]) continue;
    there_[static_cast<size_t>(value)] = true;
    base_ += BytesOf(value);
    if (std::find(wanted_.begin(), wanted_.end(), value) == wanted_.end()) all_ += BytesOf(value);
  }
}

// Returns the choice that minimizes per_time · time + per_byte · bytes, by a minimum cut:
//   source ─∞► v (wanted) ─per_byte · bytes_v► o = maker(v) ─per_time · cost_o► sink,  o ─∞► operands of o
// A node is on the source's side if the value is wanted, or if the operator runs again. An arc v ► o is cut if v is
// held.
PointCut::Corner PointCut::Solve(Wide per_time, Wide per_byte) {
  network_.Clear();
  run_.assign(graph_.operators.size(), -1);
  std::vector<ValueId> open;
  std::fill(node_.begin(), node_.end(), -1);
  const auto node_of = [&](ValueId value) {
    int32_t& node = node_[static_cast<size_t>(value)];
    if (node < 0) node = network_.AddNode(), open.push_back(value);
    return node;
  };
  const auto add_run = [&](OperatorId op) {
    int32_t& node = run_[static_cast<size_t>(op)];
    if (node >= 0) return node;
    node = network_.AddNode();
    if (fixed_[static_cast<size_t>(op)] == Fixed::kRecompute) network_.AddArc(FlowNetwork::kSource, node, kUncut);
    network_.AddArc(node, FlowNetwork::kSink,
                    fixed_[static_cast<size_t>(op)] == Fixed::kNotAgain
                        ? kUncut
                        : per_time * graph_.operators[static_cast<size_t>(op)].cost);
    for (ValueId input : values_.inputs[static_cast<size_t>(op)]) {
      if (!there_[static_cast<size_t>(input)]) network_.AddArc(node, node_of(input), kUncut);
    }
    return node;
  };
  for (ValueId value : wanted_) {
    if (!there_[static_cast<size_t>(value)]) network_.AddArc(FlowNetwork::kSource, node_of(value), kUncut);
  }
  std::vector<ValueId> values;
  while (!open.empty()) {
    const ValueId value = open.back();
    open.pop_back();
    values.push_back(value);
    const int32_t to = IsOnce(value) ? FlowNetwork::kSink : add_run(Of(value).maker);
    network_.AddArc(node_[static_cast<size_t>(value)], to, per_byte * BytesOf(value));
  }
  network_.Cut();
  Corner corner = {base_, 0, {}, {}};
  for (size_t op = 0; op < run_.size(); ++op) {
    if (run_[op] < 0 || !network_.OnSourceSide(run_[op])) continue;
    corner.time += graph_.operators[op].cost;
    corner.again.push_back(static_cast<OperatorId>(op));
  }
  for (ValueId value : values) {
    const bool made = !IsOnce(value) && network_.OnSourceSide(run_[static_cast<size_t>(Of(value).maker)]);
    if (!network_.OnSourceSide(node_[static_cast<size_t>(value)]) || made) continue;
    corner.bytes += BytesOf(value);
    corner.held.push_back(value);
  }
  return corner;
}

PointCut::Corner PointCut::Fastest() {
  Bytes most = 1;
  for (const Storage& storage : graph_.storages) most += storage.bytes;
  for (const Value& value : values_.values) most += graph_.storages[static_cast<size_t>(value.storage)].bytes;
  return Solve(most, 1);
}

PointCut::Corner PointCut::Smallest() { return Solve(1, total_); }

Bytes PointCut::LeastBytes() { return Smallest().bytes; }

std::optional<PointCut::Corner> PointCut::Between(const Corner& above, const Corner& below) {
  const Wide bytes = above.bytes - below.bytes, time = below.time - above.time;
  if (bytes <= 0 || time <= 0) return std::nullopt;
  Corner corner = Solve(bytes, time);
  if (bytes * corner.time + time * corner.bytes >= bytes * above.time + time * above.bytes) return std::nullopt;
  return corner;
}

// Moves from the corners of least time and of fewest bytes to the two neighbors around the budget.
std::optional<PointCut::Relaxation> PointCut::Relax(Bytes budget) {
  const auto one = [](Corner corner) {
    const Nanoseconds time = corner.time;
    return Relaxation{time, std::move(corner), -1, {}};
  };
  Corner above = Fastest();
  if (above.bytes <= budget) return one(std::move(above));
  Corner below = Smallest();
  if (below.bytes > budget) return std::nullopt;
  for (;;) {
    const Wide bytes = above.bytes - below.bytes, time = below.time - above.time;
    if (time <= 0) return one(std::move(below));
    std::optional<Corner> corner = Between(above, below);
    if (!corner) {
      const Wide over = time * (above.bytes - budget);
      const OperatorId undecided = Difference(above, below);
      return Relaxation{
          above.time + static_cast<Nanoseconds>((over + bytes - 1) / bytes), std::move(below), undecided, {}};
    }
    (corner->bytes > budget ? above : below) = *std::move(corner);
  }
}

// Returns the longest of the operators that run again in only one of the two corners, or -1.
OperatorId PointCut::Difference(const Corner& above, const Corner& below) const {
  std::vector<OperatorId> differ;
  std::set_symmetric_difference(above.again.begin(), above.again.end(), below.again.begin(), below.again.end(),
                                std::back_inserter(differ));
  const auto longest = std::max_element(differ.begin(), differ.end(), [this](OperatorId a, OperatorId b) {
    return graph_.operators[static_cast<size_t>(a)].cost < graph_.operators[static_cast<size_t>(b)].cost;
  });
  return longest == differ.end() ? -1 : *longest;
}

std::optional<Nanoseconds> PointCut::Time(Bytes budget) {
  if (all_ <= budget) return 0;
  const std::optional<Relaxation> relaxation = Relax(budget);
  return relaxation ? std::optional(relaxation->time) : std::nullopt;
}

// Each solution at a price of memory supports the hull of (bytes, time): time ≥ value - price · bytes. So the greatest
// of such lines is a lower bound everywhere, and exact at the corners. Adds the corner next to the minimum until there
// is none.
double PointCut::LeastCost(Bytes budget, const CostOfAway& cost, int rounds) {
  struct Line {
    double value, price;
  };
  std::vector<Corner> corners = {Smallest(), Fastest()};  // ascending bytes
  std::vector<Line> lines = {{static_cast<double>(corners.back().time), 0}};
  const double least = static_cast<double>(std::max<Bytes>(corners.front().bytes - budget, 0)),
               most = std::max(least, static_cast<double>(corners.back().bytes - budget));
  const auto cost_of = [&](double away) {
    double time = 0;
    for (const Line& line : lines)
      time = std::max(time, line.value - line.price * (away + static_cast<double>(budget)));
    return cost(away, time);
  };
  for (int round = 0;; ++round) {
    double low = least, high = most;
    for (int i = 0; i < 80 && high - low > 1; ++i) {
      const double third = (high - low) / 3;
      const bool left = cost_of(low + third) <= cost_of(high - third);
      (left ? high : low) += left ? -third : third;
    }
    const double at = (low + high) / 2;
    const double found = std::min({cost_of(low), cost_of(high), cost_of(at), cost_of(least), cost_of(most)});
    if (round >= rounds || all_ <= budget) return found;
    const auto below =
        std::upper_bound(corners.begin(), corners.end() - 1, at + static_cast<double>(budget),
                         [](double bytes, const Corner& c) { return bytes < static_cast<double>(c.bytes); });
    const size_t right = std::max<size_t>(1, static_cast<size_t>(below - corners.begin()));
    std::optional<Corner> corner = Between(corners[right], corners[right - 1]);
    const double bytes = static_cast<double>(corners[right].bytes - corners[right - 1].bytes);
    const double price = bytes <= 0 ? 0 : static_cast<double>(corners[right - 1].time - corners[right].time) / bytes;
    const Corner& on = corner ? *corner : corners[right];
    lines.push_back({static_cast<double>(on.time) + price * static_cast<double>(on.bytes), price});
    if (!corner) rounds = round + 1;  // the hull is known here
    if (corner) corners.insert(corners.begin() + static_cast<std::ptrdiff_t>(right), *std::move(corner));
  }
}

std::optional<Nanoseconds> PointCut::TimeWhole(Bytes budget, int branches,
                                               const std::function<bool(const Corner&)>& visit) {
  if (all_ <= budget) return 0;
  std::priority_queue<Relaxation> open;
  Nanoseconds found = INT64_MAX;  // the least time of a whole choice so far
  bool goes_on = true;
  const auto look = [&](const std::vector<std::pair<OperatorId, Fixed>>& fixed) {
    for (const auto& [op, way] : fixed) fixed_[static_cast<size_t>(op)] = way;
    std::optional<Relaxation> node = Relax(budget);
    for (const auto& [op, way] : fixed) fixed_[static_cast<size_t>(op)] = Fixed::kFree;
    if (!node) return;
    found = std::min(found, node->within.time);
    if (visit) goes_on = visit(node->within) && goes_on;
    node->fixed = fixed;
    open.push(*std::move(node));
  };
  look({});
  if (open.empty()) return std::nullopt;
  for (int i = 0; i < branches && goes_on && !open.empty() && open.top().time < found && open.top().undecided >= 0;
       ++i) {
    const Relaxation node = open.top();
    open.pop();
    for (const Fixed way : {Fixed::kRecompute, Fixed::kNotAgain}) {
      std::vector<std::pair<OperatorId, Fixed>> fixed = node.fixed;
      fixed.push_back({node.undecided, way});
      look(fixed);
    }
  }
  // Every open node takes at least the least of their bounds.
  return open.empty() ? found : std::min(found, open.top().time);
}

}  // namespace hotpack::remat
