#include "remat/baselines/echo.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "packer/block_unit.h"
#include "packer/pack.h"
#include "remat/chen/segments.h"
#include "remat/core/load.h"

namespace hotpack::remat {
namespace {

constexpr int32_t kNone = -1;
constexpr int64_t kPackNs = 100'000'000;

class Analysis {
 public:
  Analysis(const Graph& graph, const Values& values, const EchoOptions& options)
      : graph_(graph),
        values_(values),
        options_(options),
        again_(graph.operators.size()),
        joined_(graph.operators.size(), kNone) {
    const auto end = std::find_if(graph.operators.begin(), graph.operators.end(),
                                  [](const Operator& op) { return op.phase != Phase::kForward; });
    forward_ = static_cast<OperatorId>(end - graph.operators.begin());
  }

  EchoPlan Run() {
    FindSubgraphs();
    for (OperatorId op = 0; op < forward_; ++op) {
      if (again_[static_cast<size_t>(op)]) Weigh(op);
    }
    if (options_.longest_path > 0) PartPaths();
    EchoPlan plan;
    plan.again = again_;
    plan.subgraph_of.assign(again_.size(), kNone);
    std::vector<int32_t> number(again_.size(), kNone);
    for (OperatorId op = 0; op < forward_; ++op) {
      if (joined_[static_cast<size_t>(op)] == kNone) continue;
      int32_t& at = number[static_cast<size_t>(Root(op))];
      if (at == kNone) at = plan.subgraphs++;
      plan.subgraph_of[static_cast<size_t>(op)] = at;
    }
    return plan;
  }

  // Returns by subgraph the bytes freed between the passes, less the bytes kept for that alone.
  std::vector<Bytes> Savings(const EchoPlan& plan) const {
    std::vector<Bytes> savings(static_cast<size_t>(plan.subgraphs));
    for (size_t v = 0; v < values_.values.size(); ++v) {
      const Value& value = values_.values[v];
      const auto id = static_cast<ValueId>(v);
      if (IsAlwaysThere(id)) continue;
      const bool made_again = value.maker >= 0 && again_[static_cast<size_t>(value.maker)];
      if (made_again) {
        if (IsNeededBehind(id))
          savings[static_cast<size_t>(plan.subgraph_of[static_cast<size_t>(value.maker)])] += BytesOf(id);
        continue;
      }
      if (IsNeededBehind(id)) continue;  // kept in any case
      for (OperatorId use : value.uses) {
        if (use < forward_ && again_[static_cast<size_t>(use)]) {
          savings[static_cast<size_t>(plan.subgraph_of[static_cast<size_t>(use)])] -= BytesOf(id);
          break;  // all users are in one subgraph
        }
      }
    }
    return savings;
  }

 private:
  const Value& Of(ValueId value) const { return values_.values[static_cast<size_t>(value)]; }
  bool IsHeavy(OperatorId op) const { return graph_.operators[static_cast<size_t>(op)].heavy; }
  Bytes BytesOf(ValueId value) const { return graph_.storages[static_cast<size_t>(Of(value).storage)].bytes; }
  bool MayRunAgain(OperatorId op) const {
    return !graph_.operators[static_cast<size_t>(op)].once &&
           (options_.allowed == nullptr || (*options_.allowed)[static_cast<size_t>(op)]);
  }
  bool FeedsForward(OperatorId op) const {
    for (ValueId output : values_.outputs[static_cast<size_t>(op)]) {
      if (!Of(output).uses.empty() && Of(output).uses.front() < forward_) return true;
    }
    return false;
  }
  bool IsNeededBehind(ValueId value) const {
    return Of(value).left || (!Of(value).uses.empty() && Of(value).uses.back() >= forward_);
  }
  // Whether the value is resident in every plan, so that no operator can free it.
  bool IsAlwaysThere(ValueId value) const {
    const Storage& storage = graph_.storages[static_cast<size_t>(Of(value).storage)];
    return Of(value).maker < 0 && storage.kept;
  }

  OperatorId Root(OperatorId op) {
    while (joined_[static_cast<size_t>(op)] != op) {
      OperatorId& next = joined_[static_cast<size_t>(op)];
      op = next = joined_[static_cast<size_t>(next)];
    }
    return op;
  }
  void Join(OperatorId a, OperatorId b) { joined_[static_cast<size_t>(Root(a))] = Root(b); }

  // Lines 1 to 12.
  void FindSubgraphs() {
    // Outputs of the forward pass, which no forward operator uses, from the last one back.
    for (OperatorId op = forward_ - 1; op >= 0; --op) {
      if (!IsHeavy(op) && joined_[static_cast<size_t>(op)] == kNone && !FeedsForward(op)) Take({op});
    }
    // Operands of heavy operators.
    for (OperatorId op = forward_ - 1; op >= 0; --op) {
      if (!IsHeavy(op)) continue;
      std::vector<OperatorId> makers;
      for (ValueId input : values_.inputs[static_cast<size_t>(op)]) {
        const OperatorId maker = Of(input).maker;
        if (maker >= 0 && !IsHeavy(maker) && joined_[static_cast<size_t>(maker)] == kNone) makers.push_back(maker);
      }
      Take(makers);
    }
    // Joins the subgraphs that use the same edge.
    for (const Value& value : values_.values) {
      const Storage& storage = graph_.storages[static_cast<size_t>(value.storage)];
      if (value.maker < 0 && storage.kept) continue;  // weights
      OperatorId first = kNone;
      for (OperatorId use : value.uses) {
        if (use >= forward_ || joined_[static_cast<size_t>(use)] == kNone) continue;
        if (first == kNone) {
          first = use;
        } else {
          Join(use, first);
        }
      }
    }
  }

  // Takes these operators and all that they depend on, up to heavy operators.
  void Take(std::vector<OperatorId> open) {
    if (open.empty()) return;
    const OperatorId root = open.front();
    for (OperatorId op : open) joined_[static_cast<size_t>(op)] = root;
    while (!open.empty()) {
      const OperatorId at = open.back();
      open.pop_back();
      again_[static_cast<size_t>(at)] = MayRunAgain(at);
      for (ValueId input : values_.inputs[static_cast<size_t>(at)]) {
        const OperatorId maker = Of(input).maker;
        if (maker < 0 || IsHeavy(maker)) continue;
        if (joined_[static_cast<size_t>(maker)] != kNone) {
          Join(maker, at);
          continue;
        }
        joined_[static_cast<size_t>(maker)] = root;
        open.push_back(maker);
      }
    }
  }

  // Lines 22 to 30: compares the bytes that the operator and all that share an edge with it would free with those kept.
  void Weigh(OperatorId op) {
    std::set<ValueId> kept, gone;
    std::set<OperatorId> together = {op};
    for (ValueId input : values_.inputs[static_cast<size_t>(op)]) {
      // A recomputed operand needs no memory between the passes, so there is nothing to free.
      const OperatorId maker = Of(input).maker;
      if (IsAlwaysThere(input) || (maker >= 0 && again_[static_cast<size_t>(maker)])) continue;
      for (OperatorId use : Of(input).uses) {
        if (use >= forward_) {
          kept.insert(input);
        } else if (again_[static_cast<size_t>(use)]) {
          together.insert(use);
        }
      }
    }
    for (OperatorId each : together) {
      for (ValueId output : values_.outputs[static_cast<size_t>(each)]) kept.insert(output);
      for (ValueId input : values_.inputs[static_cast<size_t>(each)]) {
        const OperatorId maker = Of(input).maker;
        const bool stored = maker < 0 ? !IsAlwaysThere(input) : !again_[static_cast<size_t>(maker)];
        if (stored) gone.insert(input);
      }
    }
    Bytes alloc = 0, release = 0;
    for (ValueId value : kept) alloc += BytesOf(value);
    for (ValueId value : gone) release += BytesOf(value);
    if (release < alloc) return;
    for (OperatorId each : together) again_[static_cast<size_t>(each)] = false;
  }

  void PartPaths() {
    // By operator: the length of the longest path that ends at it.
    std::vector<int64_t> behind(again_.size());
    for (OperatorId op = 0; op < forward_; ++op) {
      if (!again_[static_cast<size_t>(op)]) continue;
      int64_t& at = behind[static_cast<size_t>(op)];
      for (ValueId input : values_.inputs[static_cast<size_t>(op)]) {
        if (Of(input).maker >= 0) at = std::max(at, behind[static_cast<size_t>(Of(input).maker)]);
      }
      if (++at <= options_.longest_path) continue;
      at = 0;
      again_[static_cast<size_t>(op)] = false;
    }
  }

  const Graph& graph_;
  const Values& values_;
  const EchoOptions& options_;
  std::vector<bool> again_;
  std::vector<OperatorId> joined_;  // by operator: another one of its subgraph, or itself; kNone: none
  OperatorId forward_ = 0;          // the first operator behind the forward pass
};

bool Any(const std::vector<bool>& flags) { return std::find(flags.begin(), flags.end(), true) != flags.end(); }

// Returns a lower bound in bytes on any arena for these residencies.
Bytes LeastArena(std::vector<StorageResidency> residencies) {
  for (StorageResidency& stay : residencies)
    stay.bytes = static_cast<Bytes>(RoundUpToUnit(static_cast<uint64_t>(stay.bytes)));
  const std::vector<Bytes> load = LoadOf(residencies);
  return load.empty() ? 0 : *std::max_element(load.begin(), load.end());
}

// Checks that a plan needs no more memory than the program.
class Promise {
 public:
  Promise(const Graph& graph, const Values& values, const Machine& machine)
      : graph_(graph), values_(values), machine_(machine) {
    const std::vector<GapAction> nothing(values.gaps.size(), GapAction::kKeep);
    program_ = *Simulate(graph, BuildSchedule(graph, values, nothing, machine).schedule, machine);
    least_arena_ = LeastArena(program_.residencies);
  }

  // Returns whether the plan keeps the promise, and sets its outcome if so.
  bool IsKeptBy(EchoPlan* plan) const {
    const Schedule schedule = OnceOnThePath(plan);
    absl::StatusOr<Outcome> outcome = Simulate(graph_, schedule, machine_);
    if (!outcome.ok() || outcome->live_peak > program_.live_peak) return false;
    if (!Fits(ToInstance(outcome->residencies))) return false;
    plan->outcome = *std::move(outcome);
    return true;
  }

  const Outcome& program() const { return program_; }

 private:
  // Best fit usually suffices, and is the same on every machine. Otherwise the portfolio gets a little time.
  bool Fits(const Instance& instance) const {
    const PackResult first = Pack(instance, {.algorithm = Algorithm::kBestFit, .time_limit_ns = INT64_MAX});
    if (first.status != PackStatus::kOk || first.placement.height <= least_arena_)
      return first.status == PackStatus::kOk;
    return Pack(instance, {.time_limit_ns = kPackNs, .target_height = least_arena_}).placement.height <= least_arena_;
  }

  // Removes operators from the path that would have to run more than once again. Example: the one that splits the words
  // of a sentence, for each step that reads one of them. Returns the schedule.
  Schedule OnceOnThePath(EchoPlan* plan) const {
    for (;;) {
      plan->ways = DropForward(graph_, values_, plan->again);
      Schedule schedule = BuildSchedule(graph_, values_, plan->ways, machine_, &plan->again).schedule;
      std::vector<int> runs(graph_.operators.size());
      bool often = false;
      for (const Action& action : schedule.actions) {
        if (action.kind != ActionKind::kRun || ++runs[static_cast<size_t>(action.target)] <= 2) continue;
        often = true;
        plan->again[static_cast<size_t>(action.target)] = false;
      }
      if (!often) return schedule;
    }
  }

  const Graph& graph_;
  const Values& values_;
  const Machine& machine_;
  Outcome program_;
  Bytes least_arena_ = 0;
};

// Halves the subgraphs that save memory, the better half staying, until the promise is kept.
EchoPlan Halved(EchoPlan plan, const std::vector<Bytes>& savings, const Promise& promise) {
  std::vector<int32_t> best(savings.size());
  std::iota(best.begin(), best.end(), 0);
  std::erase_if(best, [&savings](int32_t each) { return savings[static_cast<size_t>(each)] <= 0; });
  std::stable_sort(best.begin(), best.end(), [&savings](int32_t a, int32_t b) {
    return savings[static_cast<size_t>(a)] > savings[static_cast<size_t>(b)];
  });
  const std::vector<bool> all = plan.again;
  for (;; best.resize(best.size() / 2)) {
    std::vector<bool> taken(savings.size());
    for (int32_t each : best) taken[static_cast<size_t>(each)] = true;
    for (size_t op = 0; op < all.size(); ++op)
      plan.again[op] = all[op] && taken[static_cast<size_t>(plan.subgraph_of[op])];
    if (best.empty() || promise.IsKeptBy(&plan)) break;
  }
  if (best.empty()) {
    plan.ways.assign(plan.ways.size(), GapAction::kKeep);
    plan.outcome = promise.program();
  }
  return plan;
}

}  // namespace

EchoPlan PlanByEcho(const Graph& graph, const Values& values, const Machine& machine, const EchoOptions& options) {
  Analysis analysis(graph, values, options);
  EchoPlan plan = analysis.Run();
  const Promise promise(graph, values, machine);
  if (Any(plan.again) && promise.IsKeptBy(&plan)) return plan;
  plan.ways.assign(values.gaps.size(), GapAction::kKeep);
  return Halved(plan, analysis.Savings(plan), promise);
}

}  // namespace hotpack::remat
