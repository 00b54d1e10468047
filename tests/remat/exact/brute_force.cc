#include "tests/remat/exact/brute_force.h"

#include <map>
#include <queue>
#include <set>
#include <vector>

#include "remat/core/simulator.h"
#include "remat/exact/runs.h"

namespace hotpack::remat {
namespace {

constexpr int kNoMemory = -2, kGivenContents = -1;  // else the operator that made them

struct State {
  std::vector<int> contents;  // by storage
  std::vector<Bytes> memory;  // by storage
  uint32_t run = 0;           // operators that have run
  auto operator<=>(const State&) const = default;
};

class Search {
 public:
  Search(const Graph& graph, Bytes budget, const BruteForceOptions& options)
      : graph_(graph), budget_(budget), options_(options) {
    std::vector<int> now(graph.storages.size(), kNoMemory);
    for (size_t s = 0; s < now.size(); ++s) {
      if (graph.storages[s].given) now[s] = kGivenContents;
    }
    for (size_t op = 0; op < graph.operators.size(); ++op) {
      seen_.push_back(now);
      for (StorageId id : graph.operators[op].writes) now[static_cast<size_t>(id)] = static_cast<int>(op);
      for (StorageId id : graph.operators[op].updates) now[static_cast<size_t>(id)] = static_cast<int>(op);
    }
    left_ = now;
  }

  BruteForceAnswer Run() {
    State first;
    Bytes given = 0;
    for (const Storage& storage : graph_.storages) {
      first.contents.push_back(storage.given ? kGivenContents : kNoMemory);
      first.memory.push_back(storage.given ? storage.bytes : 0);
      given += first.memory.back();
    }
    if (given > budget_) return {true, {}};
    Reach(first, 0);
    while (!queue_.empty()) {
      const auto [time, state] = queue_.top();
      queue_.pop();
      if (times_.at(state) < time) continue;
      if (IsEnd(state)) return {true, time};
      if (times_.size() > options_.most_states) return {};
      for (size_t s = 0; s < state.contents.size(); ++s) {
        if (state.contents[s] == kNoMemory) continue;
        State next = state;
        next.contents[s] = kNoMemory, next.memory[s] = 0;
        Reach(next, time);
      }
      for (size_t op = 0; op < graph_.operators.size(); ++op) RunOne(state, time, op);
    }
    return {true, {}};
  }

 private:
  void Reach(const State& state, Nanoseconds time) {
    const auto [at, fresh] = times_.try_emplace(state, time);
    if (!fresh && at->second <= time) return;
    at->second = time;
    queue_.push({time, state});
  }
  bool IsEnd(const State& state) const {
    if (state.run + 1 != uint32_t{1} << graph_.operators.size()) return false;
    for (size_t s = 0; s < left_.size(); ++s) {
      if (graph_.storages[s].kept && state.contents[s] != left_[s]) return false;
    }
    return true;
  }
  bool MayRun(const State& state, size_t number) const {
    const Operator& op = graph_.operators[number];
    const bool again = (state.run >> number & 1) != 0;
    if (again && op.once) return false;
    for (size_t before = 0; before < number && !again; ++before) {
      if ((state.run >> before & 1) != 0) continue;
      const Operator& other = graph_.operators[before];
      if (options_.keeps_order || (op.once && other.once) || (op.random && other.random)) return false;
    }
    for (const std::vector<StorageId>* used : {&op.reads, &op.updates}) {
      for (StorageId id : *used) {
        if (state.contents[static_cast<size_t>(id)] != seen_[number][static_cast<size_t>(id)]) return false;
      }
    }
    return true;
  }
  void RunOne(const State& state, Nanoseconds time, size_t number) {
    if (!MayRun(state, number)) return;
    const Operator& op = graph_.operators[number];
    for (uint32_t pairs = 0; pairs < uint32_t{1} << op.in_place.size(); ++pairs) {
      State next = state;
      bool can = true;
      for (size_t p = 0; p < op.in_place.size(); ++p) {
        if ((pairs >> p & 1) == 0) continue;
        const auto read = static_cast<size_t>(op.in_place[p].read), made = static_cast<size_t>(op.in_place[p].made);
        if (next.contents[read] == kNoMemory || next.contents[made] != kNoMemory) can = false;
        if (!can) break;
        std::swap(next.contents[read], next.contents[made]);
        std::swap(next.memory[read], next.memory[made]);
      }
      if (!can) continue;
      for (StorageId id : op.writes) {
        const auto s = static_cast<size_t>(id);
        if (next.contents[s] == kNoMemory) next.memory[s] = graph_.storages[s].bytes;
        next.contents[s] = static_cast<int>(number);
      }
      for (StorageId id : op.updates) next.contents[static_cast<size_t>(id)] = static_cast<int>(number);
      Bytes live = op.workspace;
      for (Bytes bytes : next.memory) live += bytes;
      if (live > budget_) continue;
      next.run |= uint32_t{1} << number;
      Reach(next, time + op.cost);
    }
  }

  struct Later {
    bool operator()(const std::pair<Nanoseconds, State>& a, const std::pair<Nanoseconds, State>& b) const {
      return a.first > b.first;
    }
  };

  const Graph& graph_;
  const Bytes budget_;
  const BruteForceOptions options_;
  std::vector<std::vector<int>> seen_;  // by operator: each storage's contents when it runs in the program
  std::vector<int> left_;
  std::map<State, Nanoseconds> times_;
  std::priority_queue<std::pair<Nanoseconds, State>, std::vector<std::pair<Nanoseconds, State>>, Later> queue_;
};

}  // namespace

BruteForceAnswer BruteForce(const Graph& graph, Bytes budget, const BruteForceOptions& options) {
  return Search(graph, budget, options).Run();
}

std::optional<Nanoseconds> BruteForceOfStages(const Graph& graph, const Values& values, Bytes budget) {
  const size_t operators = graph.operators.size(), choices = operators * (operators + 1) / 2;
  std::optional<Nanoseconds> best;
  for (uint64_t code = 0; code < uint64_t{1} << choices; ++code) {
    std::vector<OperatorId> runs;
    Nanoseconds time = 0;
    uint64_t rest = code;
    for (size_t stage = 0; stage <= operators; ++stage) {
      for (size_t op = 0; op < stage; ++op, rest >>= 1) {
        if ((rest & 1) != 0) runs.push_back(static_cast<OperatorId>(op)), time += graph.operators[op].cost;
      }
      if (stage < operators) runs.push_back(static_cast<OperatorId>(stage)), time += graph.operators[stage].cost;
    }
    if (best && time >= *best) continue;
    const absl::StatusOr<Schedule> schedule = ScheduleOfRuns(graph, values, runs);
    if (!schedule.ok()) continue;
    const absl::StatusOr<Outcome> outcome = Simulate(graph, *schedule);
    if (outcome.ok() && outcome->live_peak <= budget) best = time;
  }
  return best;
}

}  // namespace hotpack::remat
