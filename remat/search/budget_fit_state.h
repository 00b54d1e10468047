// The implementation of remat/search/budget_fit.h, for its sources alone.
//
//   budget_fit.cc         the program in order, and reruns for it
//   budget_fit_evict.cc   evictions where memory is short; copies to the host and back
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "remat/search/budget_fit.h"

namespace hotpack::remat {

class BudgetFitter::State {
 public:
  State(const Graph& graph, const Values& values, const Machine& machine);
  bool can_go(GapId gap) const { return can_go_[At(gap)]; }
  bool can_swap(GapId gap) const {
    const Gap& of = values_.gaps[At(gap)];
    return of.before > of.after + 1 && bytes_[At(of.value)] > 0;
  }
  const std::vector<std::pair<ValueId, OperatorId>>& missed() const { return missed_; }
  BudgetFit Fit(const FitOptions& options, Decisions* choice, const std::vector<bool>* hold, Schedule* schedule);

 private:
  const Value& Of(ValueId value) const { return values_.values[At(value)]; }
  ValueId& There(ValueId value) { return device_[At(Of(value).storage)]; }
  bool IsThere(ValueId value) const { return device_[At(Of(value).storage)] == value; }
  bool MayRunAgain(OperatorId op) const { return op >= 0 && !graph_.operators[At(op)].once; }

  // The operator until which the value is held after its last use; -1: none.
  OperatorId Until(ValueId value) const { return (*tails_)[At(value)]; }

  // Whether anything after `position` uses the contents that the storage holds then.
  bool IsWanted(StorageId storage, OperatorId position) const;

  // Whether reruns could restore the value before `position`, assuming that all values not overwritten by then are
  // resident.
  bool CanBeMade(ValueId value, OperatorId position, int depth) const;
  void Reset(Schedule* schedule);
  bool Run();

  // Runs the program repeatedly with the constraints found so far, until a run finds no more. Returns false if it gives
  // up.
  bool RunUntilSettled(Schedule* schedule);

  // Returns the value's open gap, or -1 if it has no further use.
  GapId GapOf(ValueId value) const {
    const Value& of = Of(value);
    const int32_t next = next_use_[At(value)];
    if (At(next) == of.uses.size() && !of.left) return -1;
    return of.first_gap + next;
  }
  void Place(ValueId value) {
    There(value) = value;
    live_ += bytes_[At(value)];
    slot_[At(value)] = static_cast<int32_t>(resident_.size());
    resident_.push_back(value);
  }
  void Remove(ValueId value) {
    There(value) = kNoValue;
    const int32_t slot = slot_[At(value)];
    slot_[At(resident_.back())] = slot;
    resident_[At(slot)] = resident_.back();
    resident_.pop_back();
    live_ -= bytes_[At(value)];
    again_[At(value)] = false;
  }
  void Drop(ValueId value);

  // Keeps, drops or copies a value that was just made or used.
  void Settle(ValueId value);
  Nanoseconds CopyTime(Bytes bytes, double bytes_per_ns) const;

  // Begins the value's copy to the host, unless the host has it. The value is dropped when the copy has ended.
  void Copy(ValueId value, GapId gap);

  void CopyOut(ValueId value);

  // The value is dropped when its copy to the host has ended, in this gap; -1: after its last use.
  void DropWhenCopied(ValueId value, GapId gap);

  // Begins the copy to the host of contents that stay there, and drops them then.
  void CopyAway(ValueId value);

  // Drops the values whose copies have ended, so that no operator waits for a copy.
  void DropCopied();

  // Chooses the operator before which each copy back begins, so that it ends in time. Copies are placed from the last
  // one back. Each is as late as the next one on the engine allows, and not before it fits until its use. Uses the
  // times of a run in which copies took no time.
  void PlanFetches();

  // Begins the copies back that are due, as soon as they fit.
  void FetchDue();
  // Begins copies back until the engine is busy beyond the next run, of this operator: Fetching::kWhenIdle.
  void FetchWhenIdle(OperatorId next_run);
  bool IsOnHost(ValueId value) const {
    const StorageId storage = Of(value).storage;
    return device_[At(storage)] == kNoValue && host_[At(storage)] == value;
  }
  void Fetch(ValueId value);

  // Adds to the closure the operators that must run again to restore the value. Returns false if it cannot be restored.
  bool Find(ValueId value);
  bool Make(const std::vector<ValueId>& wanted);

  // Keeps the gap's value in this call, because it cannot be recomputed in the present state. After many such conflicts
  // it is always kept.
  void Forbid(GapId gap);

  // Runs an operator for the first time, or again for the present operator of the program.
  bool RunOperator(OperatorId number, bool again);

  // Waits for copies back of the operands, and for copies to the host of what the operator overwrites.
  void Wait(const Operator& op);
  void Pin(const std::vector<ValueId>& outputs, int by);

  // Returns the cost of restoring the value, with the evicted values around it. Only some of them are visited where
  // there are many.
  Nanoseconds CostOf(ValueId value);
  struct Victim {
    double score;
    ValueId value;
    GapId gap;
    bool to_host;
  };
  bool IsVictim(ValueId value, GapId gap) const;
  // Whether an eviction in the gap may copy the value to the host, and what that costs.
  bool MayGoToHost(ValueId value, GapId gap) const;
  Nanoseconds CopyCostOf(ValueId value) const;
  void Sort();

  // Returns the resident value whose pending copy to the host ends first, or end().
  std::vector<std::pair<ValueId, GapId>>::iterator NextCopied();

  // Removes and returns the best victim of the queue. Returns nullopt if nothing may be evicted.
  std::optional<Victim> NextVictim();
  bool Evict(Bytes bytes);

  const Graph& graph_;
  const Values& values_;
  const Machine machine_;
  // By gap, without the forbidden ones.
  std::vector<bool> can_go_;
  std::vector<int> conflicts_;  // by gap
  // Gaps forbidden in the present call.
  std::vector<GapId> forbidden_;
  const FitOptions* options_ = nullptr;
  const std::vector<bool>* hold_ = nullptr;
  Decisions asked_, tried_;
  std::vector<GapAction>* ways_ = nullptr;
  std::vector<OperatorId>* tails_ = nullptr;
  // By value: the last operator for which something was recomputed from it.
  std::vector<OperatorId> helped_;
  std::vector<std::pair<ValueId, OperatorId>> missed_;
  Schedule* schedule_ = nullptr;
  std::vector<std::vector<ValueId>> contents_;  // by storage: its successive values
  std::vector<ValueId> device_, host_;          // by storage
  // Copies to the host and back.
  struct Copies {
    // By storage: when its contents are complete, and when its last copy to the host ends.
    std::vector<Nanoseconds> made, copied;
    // Copies to the host under way; their values are dropped at the end.
    std::vector<std::pair<ValueId, GapId>> copying;
    Nanoseconds next_copied = 0;  // none of them ends before
    // Copies back and the operators before which they begin, ascending. Under kWhenIdle: by their uses, with these.
    std::vector<std::pair<OperatorId, GapId>> fetches;
    size_t next_fetch = 0;
    std::vector<GapId> deferred;  // due, but they do not fit yet
    bool take_time = true;
    // By operator: the most live bytes while it runs, if copies took no time.
    std::vector<Bytes> needs;
    // Under kWhenIdle, in one run: `fetches` with operators before which there is no room; -1: over. And `needs` with
    // what was copied back early.
    std::vector<std::pair<OperatorId, GapId>> waiting;
    std::vector<Bytes> taken;
    // By operator: when it begins, reruns included, if copies took no time; or starts_.
    std::vector<Nanoseconds> begins;
    std::vector<ValueId> fetch_now;
    std::vector<ValueId> away;  // given contents that begin the step on the host
    Bytes host_bytes = 0;
    int64_t count = 0;                       // to the host
    Nanoseconds to_host = 0, to_device = 0;  // when each engine has ended the work issued so far
  } copies_;
  std::vector<int32_t> next_use_;  // by value: index of its next use after the present operator
  std::vector<int32_t> pins_;      // by value: pending runs that need it
  std::vector<Bytes> bytes_;       // by value
  std::vector<int32_t> slot_;      // by value: index in resident_
  std::vector<char> again_;        // by value: recomputed in the gap that is open
  // The operators that must run again to restore values, and what a search for them has visited.
  struct Closure {
    std::vector<OperatorId> operators;
    std::vector<char> has;
    std::vector<int64_t> seen;
    std::vector<int32_t> taken;
    int64_t stamp = 0;
  } closure_;
  std::vector<Nanoseconds> starts_;
  std::vector<std::vector<ValueId>> expires_;
  std::vector<ValueId> resident_, left_, open_;
  std::vector<Victim> queue_;  // the next victim is at the back
  size_t since_sorted_ = 0;
  int64_t evictions_ = 0;
  Bytes live_ = 0, peak_ = 0, over_ = 0;
  Nanoseconds clock_ = 0;  // when the work issued so far has ended
  OperatorId now_ = -1;
  bool again_soon_ = false;  // a new constraint was found: start over
  bool conflict_ = false;
};

}  // namespace hotpack::remat
