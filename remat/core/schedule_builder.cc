#include "remat/core/schedule_builder.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

namespace hotpack::remat {
namespace {

bool MayRunAgain(const Graph& graph, const std::vector<bool>* allowed, OperatorId op) {
  return op >= 0 && !graph.operators[static_cast<size_t>(op)].once &&
         (allowed == nullptr || (*allowed)[static_cast<size_t>(op)]);
}

// One attempt to build the schedule. It may find gaps that must be held, or values that must be held beyond their uses.
// Then the caller makes another attempt.
class Builder {
 public:
  Builder(const Graph& graph, const Values& values, const std::vector<GapAction>& ways, const Machine& machine,
          const std::vector<bool>* may_run_again, const std::vector<OperatorId>& hold_until,
          const std::vector<OperatorId>& fetch_at)
      : graph_(graph),
        values_(values),
        ways_(ways),
        machine_(machine),
        may_run_again_(may_run_again),
        hold_until_(hold_until),
        device_(graph.storages.size(), kNoValue),
        host_(graph.storages.size(), kNoValue),
        last_need_(values.values.size(), -1),
        in_closure_(graph.operators.size()),
        starts_(graph.operators.size()),
        expires_(graph.operators.size() + 1) {
    for (size_t v = 0; v < hold_until.size(); ++v) {
      if (hold_until[v] >= 0) expires_[static_cast<size_t>(hold_until[v])].push_back(static_cast<ValueId>(v));
    }
    fetches_.resize(graph.operators.size());
    for (size_t g = 0; g < fetch_at.size(); ++g) {
      if (fetch_at[g] >= 0) fetches_[static_cast<size_t>(fetch_at[g])].push_back(static_cast<GapId>(g));
    }
  }

  bool Run() {
    for (size_t v = 0; v < values_.values.size(); ++v) {
      const auto value = static_cast<ValueId>(v);
      if (values_.values[v].maker < 0) {
        At(value) = value;
        Settle(value, -1);
      }
    }
    for (size_t i = 0; i < graph_.operators.size(); ++i) {
      now_ = static_cast<OperatorId>(i);
      for (GapId gap : fetches_[i]) Fetch(values_.gaps[static_cast<size_t>(gap)].value);
      if (!MakeInputs()) return false;
      starts_[i] = clock_;
      Emit(now_, [this](ValueId value) { return Dies(value); });
      for (ValueId value : values_.inputs[i]) Settle(value, now_);
      for (ValueId value : values_.outputs[i]) Settle(value, now_);
      for (ValueId value : expires_[i]) {
        if (At(value) == value && Ends(value)) DropNow(value);
      }
      if (!swapping_.empty()) DropCopied();
    }
    now_ = static_cast<OperatorId>(graph_.operators.size());
    return MakeLeft();
  }

  Schedule TakeSchedule() { return {std::move(actions_), std::vector<OperatorId>(saved_.begin(), saved_.end())}; }
  const std::vector<Nanoseconds>& starts() const { return starts_; }
  GapId must_hold() const { return must_hold_; }  // -1: none
  // Values that must be held, and until which operator.
  const std::vector<std::pair<ValueId, OperatorId>>& must_stay() const { return must_stay_; }

 private:
  const Value& Of(ValueId value) const { return values_.values[static_cast<size_t>(value)]; }
  ValueId& At(ValueId value) { return device_[static_cast<size_t>(Of(value).storage)]; }

  // Returns the gap that is open after the operator `now` has run, or -1.
  GapId GapAfter(ValueId value, OperatorId now) const {
    const Value& of = Of(value);
    const auto next = std::upper_bound(of.uses.begin(), of.uses.end(), now);
    if (next == of.uses.end() && !of.left) return -1;
    return of.first_gap + static_cast<GapId>(next - of.uses.begin());
  }
  bool Ends(ValueId value) const { return GapAfter(value, now_) < 0; }
  // Whether the value has no use after the present operator.
  bool Dies(ValueId value) const { return Ends(value) && hold_until_[static_cast<size_t>(value)] <= now_; }

  void DropNow(ValueId value) {
    actions_.push_back({ActionKind::kDrop, Of(value).storage});
    At(value) = kNoValue;
  }

  // Keeps, drops or copies a value that the operator `after` just made or used.
  void Settle(ValueId value, OperatorId after) {
    if (At(value) != value) return;
    const GapId gap = GapAfter(value, after);
    if (gap < 0) {
      if (hold_until_[static_cast<size_t>(value)] <= after) DropNow(value);
      return;
    }
    const GapAction way = ways_[static_cast<size_t>(gap)];
    if (way == GapAction::kKeep || hold_until_[static_cast<size_t>(value)] > after) return;
    const Storage& storage = graph_.storages[static_cast<size_t>(Of(value).storage)];
    if (way != GapAction::kOffload && storage.held && storage.movable) return;
    if (way == GapAction::kOffload) {
      Copy(value);
    } else {
      DropNow(value);
    }
  }

  void Copy(ValueId value) {
    const Storage& storage = graph_.storages[static_cast<size_t>(Of(value).storage)];
    if (host_[static_cast<size_t>(Of(value).storage)] != value) {
      actions_.push_back({ActionKind::kOffload, Of(value).storage});
      host_[static_cast<size_t>(Of(value).storage)] = value;
      to_host_ =
          std::max(to_host_, clock_) +
          static_cast<Nanoseconds>(std::ceil(static_cast<double>(storage.bytes) / machine_.bytes_per_ns_to_host));
    }
    swapping_.push_back({value, to_host_});
  }
  // Drops values whose copies have ended, so that no operator waits for a copy.
  void DropCopied() {
    std::erase_if(swapping_, [this](const Swapping& each) {
      if (At(each.value) != each.value) return true;
      if (each.copied > clock_) return false;
      DropNow(each.value);
      return true;
    });
  }
  void Fetch(ValueId value) {
    std::erase_if(swapping_, [value](const Swapping& each) { return each.value == value; });
    if (At(value) != kNoValue || host_[static_cast<size_t>(Of(value).storage)] != value) return;
    actions_.push_back({ActionKind::kPrefetch, Of(value).storage});
    At(value) = value;
  }

  // An operator that runs again, and the gap at whose end the value is needed.
  struct Rerun {
    OperatorId op;
    GapId gap;
  };

  // Adds to `closure` the operators that must run again to restore `value`.
  bool Find(ValueId value, GapId gap, std::vector<Rerun>* closure) {
    if (At(value) == value) return true;
    if (At(value) == kNoValue && host_[static_cast<size_t>(Of(value).storage)] == value) {
      Fetch(value);
      return true;
    }
    const OperatorId maker = Of(value).maker;
    if (!MayRunAgain(graph_, may_run_again_, maker)) {
      // Its storage has other contents by now.
      if (At(value) != kNoValue || Of(value).overwritten < now_) {
        must_hold_ = gap;
        return false;
      }
      // It would be resident if it had been held until now. This attempt continues as if it were; the next one holds
      // it.
      must_stay_.push_back({value, now_});
      At(value) = value;
      return true;
    }
    if (in_closure_[static_cast<size_t>(maker)]) return true;
    in_closure_[static_cast<size_t>(maker)] = true;
    closure->push_back({maker, gap});
    for (ValueId input : values_.inputs[static_cast<size_t>(maker)]) {
      if (!Find(input, gap, closure)) return false;
    }
    return true;
  }

  bool MakeInputs() { return Make(values_.inputs[static_cast<size_t>(now_)]); }
  bool MakeLeft() {
    std::vector<ValueId> left;
    for (size_t v = 0; v < values_.values.size(); ++v) {
      if (values_.values[v].left) left.push_back(static_cast<ValueId>(v));
    }
    return Make(left);
  }

  // Returns the gap of `value` that is open before the present operator, or -1.
  GapId EndingGap(ValueId value) const { return GapAfter(value, now_ - 1); }

  bool Make(const std::vector<ValueId>& wanted) {
    std::vector<Rerun> closure;
    for (ValueId value : wanted) {
      if (!Find(value, EndingGap(value), &closure)) return false;
    }
    if (closure.empty()) return true;
    std::sort(closure.begin(), closure.end(), [](const Rerun& a, const Rerun& b) { return a.op < b.op; });
    if (!RunAgain(closure, wanted)) return false;
    for (const auto& [op, gap] : closure) {
      for (ValueId input : values_.inputs[static_cast<size_t>(op)]) last_need_[static_cast<size_t>(input)] = -1;
      in_closure_[static_cast<size_t>(op)] = false;
    }
    for (ValueId value : wanted) last_need_[static_cast<size_t>(value)] = -1;
    return true;
  }

  // Runs the operators again in the program's order, and drops values made for them alone.
  bool RunAgain(const std::vector<Rerun>& closure, const std::vector<ValueId>& wanted) {
    for (size_t i = 0; i < closure.size(); ++i) {
      for (ValueId input : values_.inputs[static_cast<size_t>(closure[i].op)])
        last_need_[static_cast<size_t>(input)] = static_cast<int64_t>(i);
    }
    for (ValueId value : wanted) last_need_[static_cast<size_t>(value)] = static_cast<int64_t>(closure.size());
    std::set<ValueId> temporary;
    for (size_t i = 0; i < closure.size(); ++i) {
      const auto [op, gap] = closure[i];
      const auto goes = [&](ValueId value) {
        return temporary.contains(value) && last_need_[static_cast<size_t>(value)] <= static_cast<int64_t>(i);
      };
      if (!CanRun(op, goes)) {
        must_hold_ = gap;
        return false;
      }
      std::vector<ValueId> made;
      for (ValueId output : values_.outputs[static_cast<size_t>(op)]) {
        if (At(output) != output) made.push_back(output);
      }
      Emit(op, goes);
      if (graph_.operators[static_cast<size_t>(op)].random) saved_.insert(op);
      for (ValueId output : made) {
        if (!Lingers(output)) temporary.insert(output);
      }
      for (ValueId input : values_.inputs[static_cast<size_t>(op)]) {
        if (goes(input) && At(input) == input) DropNow(input);
      }
      for (ValueId output : made) {
        if (goes(output)) DropNow(output);
      }
    }
    return true;
  }

  // Whether the operands of `op` are resident, and the contents that it overwrites are not wanted.
  template <typename Goes>
  bool CanRun(OperatorId op, Goes goes) {
    const std::vector<ValueId>& inputs = values_.inputs[static_cast<size_t>(op)];
    if (std::any_of(inputs.begin(), inputs.end(), [this](ValueId input) { return At(input) != input; })) return false;
    for (ValueId output : values_.outputs[static_cast<size_t>(op)]) {
      const ValueId there = At(output);
      if (there == kNoValue || there == output) continue;
      if (!goes(there) || std::find(inputs.begin(), inputs.end(), there) == inputs.end()) return false;
    }
    return true;
  }

  // Whether a recomputed value stays: it is used now, or it is held until its next use.
  bool Lingers(ValueId value) const {
    const GapId gap = EndingGap(value);
    if (gap < 0) return hold_until_[static_cast<size_t>(value)] > now_;
    return values_.gaps[static_cast<size_t>(gap)].before == now_ ||
           ways_[static_cast<size_t>(gap)] != GapAction::kRecomputeOnce;
  }

  // Emits a run. It works in place on operands for which `used_up` returns true.
  template <typename UsedUp>
  void Emit(OperatorId number, UsedUp used_up) {
    const Operator& op = graph_.operators[static_cast<size_t>(number)];
    Action action = {ActionKind::kRun, number, {}};
    std::set<StorageId> taken;
    for (size_t pair = 0; pair < op.in_place.size(); ++pair) {
      const auto [read, made] = op.in_place[pair];
      const ValueId value = device_[static_cast<size_t>(read)];
      if (value == kNoValue || device_[static_cast<size_t>(made)] != kNoValue || !used_up(value)) continue;
      // In a larger storage the unused rest would stay as long as the result.
      if (graph_.storages[static_cast<size_t>(read)].bytes != graph_.storages[static_cast<size_t>(made)].bytes)
        continue;
      if (!taken.insert(read).second || !taken.insert(made).second) continue;
      action.in_place.push_back(static_cast<int32_t>(pair));
      device_[static_cast<size_t>(read)] = kNoValue;
    }
    for (ValueId output : values_.outputs[static_cast<size_t>(number)]) At(output) = output;
    clock_ += op.cost;
    actions_.push_back(std::move(action));
  }

  struct Swapping {
    ValueId value;
    Nanoseconds copied;
  };

  const Graph& graph_;
  const Values& values_;
  const std::vector<GapAction>& ways_;
  const Machine& machine_;
  const std::vector<bool>* may_run_again_;     // by operator; null: all
  const std::vector<OperatorId>& hold_until_;  // by value: held at least until this operator has run; -1: no limit
  std::vector<ValueId> device_, host_;         // by storage
  std::vector<int64_t> last_need_;             // by value: the last run of a closure that uses it; -1
  std::vector<bool> in_closure_;
  std::vector<Nanoseconds> starts_;
  std::vector<std::vector<ValueId>> expires_;
  std::vector<std::vector<GapId>> fetches_;
  std::vector<Swapping> swapping_;
  std::vector<Action> actions_;
  std::set<OperatorId> saved_;
  Nanoseconds clock_ = 0, to_host_ = 0;
  OperatorId now_ = -1;
  GapId must_hold_ = -1;
  std::vector<std::pair<ValueId, OperatorId>> must_stay_;
};

// Returns by value the operator until which it is needed for recomputation, if its own operator may not run again. -1:
// never.
std::vector<OperatorId> NeededUntil(const Graph& graph, const Values& values, const std::vector<GapAction>& ways,
                                    const std::vector<bool>& allowed) {
  std::vector<OperatorId> until(values.values.size(), -1);
  std::vector<GapId> seen(values.values.size(), -1);
  for (size_t g = 0; g < ways.size(); ++g) {
    if (ways[g] != GapAction::kRecompute && ways[g] != GapAction::kRecomputeOnce) continue;
    const OperatorId at = values.gaps[g].before;
    std::vector<ValueId> open = {values.gaps[g].value};
    while (!open.empty()) {
      const OperatorId maker = values.values[static_cast<size_t>(open.back())].maker;
      open.pop_back();
      if (!MayRunAgain(graph, &allowed, maker)) continue;
      for (ValueId input : values.inputs[static_cast<size_t>(maker)]) {
        if (std::exchange(seen[static_cast<size_t>(input)], static_cast<GapId>(g)) == static_cast<GapId>(g)) continue;
        const Value& value = values.values[static_cast<size_t>(input)];
        if (MayRunAgain(graph, &allowed, value.maker)) {
          open.push_back(input);
        } else if (value.overwritten >= at) {
          until[static_cast<size_t>(input)] = std::max(until[static_cast<size_t>(input)], at);
        }
      }
    }
  }
  return until;
}

// Returns by gap the operator before which its copy back begins, so that it ends in time. Copies are placed from the
// last one back, each as late as the next one on the engine allows.
std::vector<OperatorId> FetchTimes(const Graph& graph, const Values& values, const std::vector<GapAction>& ways,
                                   const Machine& machine, const std::vector<Nanoseconds>& starts) {
  std::vector<OperatorId> at(values.gaps.size(), -1);
  std::vector<GapId> swapped;
  for (size_t g = 0; g < values.gaps.size(); ++g) {
    if (ways[g] == GapAction::kOffload && static_cast<size_t>(values.gaps[g].before) < starts.size())
      swapped.push_back(static_cast<GapId>(g));
  }
  std::sort(swapped.begin(), swapped.end(), [&](GapId a, GapId b) {
    return values.gaps[static_cast<size_t>(a)].before > values.gaps[static_cast<size_t>(b)].before;
  });
  Nanoseconds free = INT64_MAX;
  for (GapId g : swapped) {
    const Gap& gap = values.gaps[static_cast<size_t>(g)];
    const Bytes bytes =
        graph.storages[static_cast<size_t>(values.values[static_cast<size_t>(gap.value)].storage)].bytes;
    const auto takes = static_cast<Nanoseconds>(std::ceil(static_cast<double>(bytes) / machine.bytes_per_ns_to_device));
    free = std::min(free, starts[static_cast<size_t>(gap.before)]) - takes;
    // The last operator that starts by then.
    const auto op = std::upper_bound(starts.begin(), starts.end(), free) - starts.begin() - 1;
    at[static_cast<size_t>(g)] = std::clamp(static_cast<OperatorId>(op), gap.after + 1, gap.before);
  }
  return at;
}

}  // namespace

BuiltSchedule BuildSchedule(const Graph& graph, const Values& values, const std::vector<GapAction>& asked,
                            const Machine& machine, const std::vector<bool>* may_run_again) {
  BuiltSchedule result;
  std::vector<GapAction> ways = asked;
  for (size_t g = 0; g < ways.size(); ++g) {
    if (values.gaps[g].before == values.gaps[g].after + 1) ways[g] = GapAction::kKeep;  // no operator runs in it
  }
  std::vector<OperatorId> hold_until(values.values.size(), -1), fetch_at(values.gaps.size(), -1);
  if (may_run_again != nullptr) hold_until = NeededUntil(graph, values, ways, *may_run_again);
  bool swaps = std::find(ways.begin(), ways.end(), GapAction::kOffload) != ways.end();
  for (;;) {
    Builder builder(graph, values, ways, machine, may_run_again, hold_until, fetch_at);
    const bool whole = builder.Run();
    for (const auto& [value, until] : builder.must_stay()) {
      hold_until[static_cast<size_t>(value)] = std::max(hold_until[static_cast<size_t>(value)], until);
    }
    if (whole && !builder.must_stay().empty()) continue;
    if (whole) {
      if (swaps) {  // the times are known only now
        fetch_at = FetchTimes(graph, values, ways, machine, builder.starts());
        swaps = false;
        continue;
      }
      result.schedule = builder.TakeSchedule();
      return result;
    }
    const GapId gap = builder.must_hold();
    if (std::exchange(ways[static_cast<size_t>(gap)], GapAction::kKeep) != GapAction::kKeep) {
      result.held.push_back(gap);
      continue;
    }
    // The program without recomputation is always possible.
    for (size_t g = 0; g < ways.size(); ++g) {
      if (std::exchange(ways[g], GapAction::kKeep) != GapAction::kKeep) result.held.push_back(static_cast<GapId>(g));
    }
  }
}

}  // namespace hotpack::remat
