#include "planner/descent.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <random>
#include <utility>

#include "planner/load.h"

namespace hotpack::planner {
namespace {

// A plan and what the simulator says of it.
struct State {
  std::vector<Way> ways;
  Schedule schedule;
  Outcome outcome;
  std::vector<Bytes> load;

  Bytes Excess(Bytes target) const {
    Bytes sum = 0;
    for (Bytes bytes : load) sum += std::max<Bytes>(0, bytes - target);
    return sum;
  }
};

struct Move {
  GapId gap;
  Way way;
  double score = 0;  // by estimate: bytes of excess less for a nanosecond more
};

class Descender {
 public:
  Descender(const Graph& graph, const Values& values, const DescentOptions& options)
      : graph_(graph), values_(values), options_(options), fixed_(values.gaps.size()), bytes_(values.gaps.size()) {
    for (size_t g = 0; g < values.gaps.size(); ++g) {
      const Gap& gap = values.gaps[g];
      bytes_[g] = graph.storages[static_cast<size_t>(values.values[static_cast<size_t>(gap.value)].storage)].bytes;
      fixed_[g] = gap.before == gap.after + 1 || bytes_[g] == 0;
    }
  }

  Frontier Run() {
    State state = Evaluate(std::vector<Way>(values_.gaps.size(), Way::kHold));
    frontier_.least = LeastMemory(graph_, options_.swap);
    Keep(state);
    const Bytes most = state.outcome.live_peak, least = std::max(frontier_.least, options_.stop_at);
    // The last level at once, so that there is a plan however short the time; the way over the others finds better ones.
    State direct = state;
    if (most <= least) return Frontier{Sorted(), frontier_.least, frontier_.evaluations};
    const bool reached = Lower(&direct, least, 1);
    if (reached) Mend(&direct, least);
    for (int level = 1; level <= options_.levels && !Done(); ++level) {
      const Bytes target = most - static_cast<Bytes>(static_cast<double>(most - least) * level / options_.levels);
      if (!Lower(&state, target, tried_)) break;
      Mend(&state, target);
      if (reached && level == options_.levels && direct.outcome.time < state.outcome.time) state = direct;
      if (!options_.improve_all && level < options_.levels) continue;
      for (int i = 0; i < options_.improvements && !Done(); ++i) {
        if (!Improve(&state, target)) break;
      }
    }
    return Frontier{Sorted(), frontier_.least, frontier_.evaluations};
  }

 private:
  bool Done() const {
    if (frontier_.evaluations >= options_.evaluations) return true;
    if (options_.time_limit_ns == INT64_MAX) return false;
    return std::chrono::steady_clock::now() - begin_ > std::chrono::nanoseconds(options_.time_limit_ns);
  }

  State Evaluate(std::vector<Way> ways) {
    ++frontier_.evaluations;
    State state;
    Rebuilt rebuilt = Rebuild(graph_, values_, ways, options_.machine);
    for (GapId gap : rebuilt.held) ways[static_cast<size_t>(gap)] = Way::kHold;
    absl::StatusOr<Outcome> outcome = Simulate(graph_, rebuilt.schedule, options_.machine);
    if (!outcome.ok()) return Failed();
    state.ways = std::move(ways);
    state.schedule = std::move(rebuilt.schedule);
    state.outcome = *std::move(outcome);
    state.load = LoadOf(state.outcome.stays);
    return state;
  }
  // The host has no room: a plan that nobody takes.
  static State Failed() {
    State state;
    state.outcome.time = INT64_MAX;
    state.outcome.live_peak = INT64_MAX;
    state.load = {INT64_MAX / 4};
    return state;
  }

  void Keep(const State& state) {
    Plan& plan = best_[state.outcome.live_peak];
    if (plan.ways.empty() || state.outcome.time < plan.time) plan = {state.ways, state.outcome.time, state.outcome.live_peak};
  }
  std::vector<Plan> Sorted() const {
    std::vector<Plan> plans;  // ascending memory; only those faster than all that take less
    for (const auto& [bytes, plan] : best_) {
      if (plans.empty() || plan.time < plans.back().time) plans.push_back(plan);
    }
    std::reverse(plans.begin(), plans.end());
    return plans;
  }

  // For each clock value the operator of the program that ran last, or runs.
  std::vector<OperatorId> Positions(const Schedule& schedule) const {
    std::vector<OperatorId> positions = {-1};
    OperatorId next = 0;
    for (const Action& action : schedule.actions) {
      if (action.kind == ActionKind::kRun && action.target == next) ++next;
      if (action.kind == ActionKind::kRun || action.kind == ActionKind::kPrefetch) positions.push_back(next - 1);
    }
    return positions;
  }

  // The gap of a storage's contents that is open when `position` has run or, again, is being prepared; -1.
  GapId OpenGap(StorageId storage, OperatorId position) {
    if (by_storage_.empty()) {
      by_storage_.resize(graph_.storages.size());
      for (size_t g = 0; g < values_.gaps.size(); ++g) {
        const StorageId of = values_.values[static_cast<size_t>(values_.gaps[g].value)].storage;
        by_storage_[static_cast<size_t>(of)].push_back(static_cast<GapId>(g));
      }
      for (std::vector<GapId>& gaps : by_storage_) {
        std::sort(gaps.begin(), gaps.end(), [this](GapId a, GapId b) {
          return values_.gaps[static_cast<size_t>(a)].before < values_.gaps[static_cast<size_t>(b)].before;
        });
      }
    }
    const std::vector<GapId>& gaps = by_storage_[static_cast<size_t>(storage)];
    const auto found = std::upper_bound(gaps.begin(), gaps.end(), position, [this](OperatorId at, GapId gap) {
      return at < values_.gaps[static_cast<size_t>(gap)].before;
    });
    if (found == gaps.end() || values_.gaps[static_cast<size_t>(*found)].after >= position) return -1;
    return *found;
  }

  // What making the gap's value again costs, if all that is not held over the gap's end has to be made again too.
  Nanoseconds CostAgain(const std::vector<Way>& ways, GapId gap) {
    const OperatorId at = values_.gaps[static_cast<size_t>(gap)].before;
    ++stamp_;
    seen_.resize(graph_.operators.size());
    Nanoseconds cost = 0;
    std::vector<ValueId> open = {values_.gaps[static_cast<size_t>(gap)].value};
    bool first = true;
    while (!open.empty()) {
      const ValueId value = open.back();
      open.pop_back();
      const Value& of = values_.values[static_cast<size_t>(value)];
      if (!std::exchange(first, false) && IsThere(ways, value, at)) continue;
      if (of.maker < 0 || seen_[static_cast<size_t>(of.maker)] == stamp_) continue;
      seen_[static_cast<size_t>(of.maker)] = stamp_;
      cost += graph_.operators[static_cast<size_t>(of.maker)].cost;
      for (ValueId input : values_.inputs[static_cast<size_t>(of.maker)]) open.push_back(input);
    }
    return cost;
  }
  bool IsThere(const std::vector<Way>& ways, ValueId value, OperatorId at) const {
    const Value& of = values_.values[static_cast<size_t>(value)];
    if (of.maker < 0) return true;
    const auto next = std::lower_bound(of.uses.begin(), of.uses.end(), at);
    if (next == of.uses.end() && !of.left) return false;
    const auto gap = static_cast<size_t>(of.first_gap + (next - of.uses.begin()));
    return ways[gap] == Way::kHold || ways[gap] == Way::kSwap;
  }

  // What could be let go at the clock value where most is resident, the best by estimate first.
  std::vector<Move> Moves(const State& state, Bytes target) {
    const auto peak = std::max_element(state.load.begin(), state.load.end()) - state.load.begin();
    const std::vector<OperatorId> positions = Positions(state.schedule);
    const OperatorId position = positions[static_cast<size_t>(peak)];
    // Clock values over the target, summed up, to see how much of an excess a stay is part of.
    std::vector<int64_t> over(state.load.size() + 1);
    for (size_t i = 0; i < state.load.size(); ++i) over[i + 1] = over[i] + (state.load[i] > target ? 1 : 0);
    std::vector<Move> moves;
    for (const Stay& stay : state.outcome.stays) {
      if (stay.storage < 0 || stay.begin > peak || stay.end <= peak) continue;
      const GapId gap = OpenGap(stay.storage, position);
      if (gap < 0 || fixed_[static_cast<size_t>(gap)]) continue;
      const Way now = state.ways[static_cast<size_t>(gap)];
      const auto saved = static_cast<double>(stay.bytes) * static_cast<double>(over[static_cast<size_t>(stay.end)] - over[static_cast<size_t>(stay.begin)]);
      if (now == Way::kHold) {
        moves.push_back({gap, Way::kAgain, saved / static_cast<double>(1 + CostAgain(state.ways, gap))});
        if (options_.swap) {
          const double copy = static_cast<double>(stay.bytes) / options_.machine.bytes_per_ns_to_host;
          moves.push_back({gap, Way::kSwap, saved / (1 + copy)});
        }
      } else if (now == Way::kAgain) {
        moves.push_back({gap, Way::kAgainOnce, saved / static_cast<double>(1 + CostAgain(state.ways, gap))});
      }
    }
    std::stable_sort(moves.begin(), moves.end(), [](const Move& a, const Move& b) { return a.score > b.score; });
    return moves;
  }

  // The best by the simulator of the `most_tried` that are best by estimate and help; a state without ways if none does.
  State Best(const State& state, Bytes target, const std::vector<Move>& moves, size_t most_tried) {
    const Bytes excess = state.Excess(target);
    State best;
    double best_score = 0;
    size_t tried = 0;
    for (const Move& move : moves) {
      if (tried >= most_tried && best_score > 0) break;
      if (Done()) break;
      ++tried;
      std::vector<Way> ways = state.ways;
      ways[static_cast<size_t>(move.gap)] = move.way;
      State next = Evaluate(std::move(ways));
      if (next.ways.empty() || next.ways[static_cast<size_t>(move.gap)] != move.way) {
        if (move.way != Way::kSwap) fixed_[static_cast<size_t>(move.gap)] = !options_.swap;
        continue;
      }
      const Bytes less = excess - next.Excess(target);
      if (less <= 0) continue;
      const auto more = static_cast<double>(std::max<Nanoseconds>(0, next.outcome.time - state.outcome.time));
      const double score = static_cast<double>(less) / (1 + more);
      if (score > best_score) {
        best_score = score;
        best = std::move(next);
      }
    }
    return best;
  }

  // Where values are small beside what there is too much, the best by estimate go together: those that make a quarter of it. A
  // state without ways if that does not help.
  State Many(const State& state, Bytes target, const std::vector<Move>& moves) {
    constexpr size_t kMany = 4;
    const Bytes enough = (state.outcome.live_peak - target) / 4;
    std::vector<Way> ways = state.ways;
    Bytes sum = 0;
    size_t count = 0;
    for (const Move& move : moves) {
      if (sum >= enough) break;
      if (ways[static_cast<size_t>(move.gap)] != state.ways[static_cast<size_t>(move.gap)]) continue;  // its other way is better
      ways[static_cast<size_t>(move.gap)] = move.way;
      sum += bytes_[static_cast<size_t>(move.gap)];
      ++count;
    }
    if (count < kMany) return {};
    State next = Evaluate(std::move(ways));
    for (size_t i = 0; i < count && i < moves.size() && !next.ways.empty(); ++i) {
      const auto gap = static_cast<size_t>(moves[i].gap);
      if (next.ways[gap] == Way::kHold && !options_.swap) fixed_[gap] = true;  // nothing can make it again
    }
    return next.Excess(target) < state.Excess(target) ? std::move(next) : State{};
  }

  // Lets go of values until nothing is above the target. False if it cannot be had.
  bool Lower(State* state, Bytes target, size_t most_tried) {
    while (state->outcome.live_peak > target) {
      if (Done()) return false;
      const std::vector<Move> moves = Moves(*state, target);
      State next = Many(*state, target, moves);
      if (next.ways.empty()) next = Best(*state, target, moves, most_tried);
      if (next.ways.empty()) return false;
      *state = std::move(next);
      Keep(*state);
    }
    return true;
  }

  // Holds again what need not have been let go: what costs most first, many at once where that is possible.
  void Mend(State* state, Bytes target) {
    std::vector<std::pair<Nanoseconds, GapId>> gone;
    for (size_t g = 0; g < state->ways.size(); ++g) {
      if (state->ways[g] == Way::kHold) continue;
      gone.push_back({state->ways[g] == Way::kSwap ? 0 : CostAgain(state->ways, static_cast<GapId>(g)), static_cast<GapId>(g)});
    }
    std::sort(gone.rbegin(), gone.rend());
    constexpr size_t kParts = 64;
    const size_t part = (gone.size() + kParts - 1) / kParts;
    for (size_t begin = 0; begin < gone.size(); begin += part) {
      MendPart(state, target, gone, begin, std::min(begin + part, gone.size()));
    }
    Keep(*state);
  }
  void MendPart(State* state, Bytes target, const std::vector<std::pair<Nanoseconds, GapId>>& gone, size_t begin, size_t end) {
    for (Way way : {Way::kHold, Way::kAgain}) {
      if (Done()) return;
      std::vector<Way> ways = state->ways;
      bool changes = false;
      for (size_t i = begin; i < end; ++i) {
        Way& of = ways[static_cast<size_t>(gone[i].second)];
        if (of <= way) continue;
        of = way;
        changes = true;
      }
      if (!changes) continue;
      State next = Evaluate(std::move(ways));
      if (next.outcome.live_peak <= target && next.outcome.time <= state->outcome.time) {
        *state = std::move(next);
        return;
      }
    }
    constexpr size_t kLargeGraph = 2000;  // gaps gone: one by one would take too long
    if (end - begin < 2 || gone.size() > kLargeGraph) return;
    MendPart(state, target, gone, begin, (begin + end) / 2);
    MendPart(state, target, gone, (begin + end) / 2, end);
  }

  // Ruin and recreate (Schrimpf et al. 2000): holds some of what went, and lets others go for it. False if there is nothing to try.
  bool Improve(State* state, Bytes target) {
    std::vector<GapId> gone;
    for (size_t g = 0; g < state->ways.size(); ++g) {
      if (state->ways[g] != Way::kHold) gone.push_back(static_cast<GapId>(g));
    }
    if (gone.size() < 2) return false;
    const auto draw = [this](size_t below) { return static_cast<size_t>(random_() % below); };
    const size_t count = 1 + draw(std::min<size_t>(8, gone.size()));
    const size_t from = draw(gone.size());
    std::vector<Way> ways = state->ways;
    const bool scattered = draw(2) == 0;
    for (size_t i = 0; i < count; ++i) ways[static_cast<size_t>(gone[scattered ? draw(gone.size()) : (from + i) % gone.size()])] = Way::kHold;
    State next = Evaluate(std::move(ways));
    if (!Lower(&next, target, tried_)) return true;
    Mend(&next, target);
    if (next.outcome.time < state->outcome.time) *state = std::move(next);
    return true;
  }

  const Graph& graph_;
  const Values& values_;
  const DescentOptions& options_;
  const size_t tried_ = std::clamp<size_t>(30'000 / (1 + graph_.operators.size()), 3, 12);  // moves, by the simulator
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::mt19937_64 random_{options_.seed};
  std::vector<bool> fixed_;   // by gap: to be held
  std::vector<Bytes> bytes_;  // by gap
  std::vector<std::vector<GapId>> by_storage_;
  std::vector<int64_t> seen_;
  int64_t stamp_ = 0;
  std::map<Bytes, Plan> best_;
  Frontier frontier_;
};

}  // namespace

Bytes LeastMemory(const Graph& graph, bool swap) {
  std::vector<bool> stays(graph.storages.size());
  Bytes always = 0, most = 0;
  for (size_t id = 0; id < stays.size(); ++id) stays[id] = !swap && graph.storages[id].given && graph.storages[id].kept;
  for (const Operator& op : graph.operators) {
    for (StorageId id : op.writes) stays[static_cast<size_t>(id)] = false;  // its contents may go before they are made anew
  }
  for (size_t id = 0; id < stays.size(); ++id) always += stays[id] ? graph.storages[id].bytes : 0;
  Bytes begin = 0, end = 0;
  for (const Storage& storage : graph.storages) {
    begin += storage.given ? storage.bytes : 0;
    end += storage.kept ? storage.bytes : 0;
  }
  most = std::max(begin, end);
  for (const Operator& op : graph.operators) {
    Bytes needs = always + op.workspace;
    for (const std::vector<StorageId>* list : {&op.reads, &op.writes, &op.updates}) {
      for (StorageId id : *list) needs += stays[static_cast<size_t>(id)] ? 0 : graph.storages[static_cast<size_t>(id)].bytes;
    }
    for (const InPlace& pair : op.in_place) needs -= graph.storages[static_cast<size_t>(pair.made)].bytes;
    most = std::max(most, needs);
  }
  return most;
}

Frontier Descend(const Graph& graph, const Values& values, const DescentOptions& options) {
  return Descender(graph, values, options).Run();
}

}  // namespace hotpack::planner
