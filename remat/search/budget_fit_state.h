// The work of remat/search/budget_fit.h, for its sources alone.
//
//   fit.cc         the program in order, and what runs again for it
//   fit_room.cc    what goes where memory is short; copies to the host and back
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
  static constexpr ValueId kNothing = -1;
  static size_t At(int32_t id) { return static_cast<size_t>(id); }
  const Value& Of(ValueId value) const { return values_.values[At(value)]; }
  ValueId& There(ValueId value) { return device_[At(Of(value).storage)]; }
  bool IsThere(ValueId value) const { return device_[At(Of(value).storage)] == value; }
  bool MayRunAgain(OperatorId op) const { return op >= 0 && !graph_.operators[At(op)].once; }

  // Until when it is there although nobody will use it.
  OperatorId Until(ValueId value) const { return (*tails_)[At(value)]; }

  // Whether anything behind `position` uses what the storage holds then.
  bool IsWanted(StorageId storage, OperatorId position) const;

  // Whether operators could make it again before `position`, if all that has not been overwritten by then is there.
  bool CanBeMade(ValueId value, OperatorId position, int depth) const;
  void Reset(Schedule* schedule);
  bool Run();

  // Again with what was learnt, until nothing is. False: given up.
  bool RunUntilSettled(Schedule* schedule);

  // The gap that is open, or -1: nobody will want it.
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
    There(value) = kNothing;
    const int32_t slot = slot_[At(value)];
    slot_[At(resident_.back())] = slot;
    resident_[At(slot)] = resident_.back();
    resident_.pop_back();
    live_ -= bytes_[At(value)];
    again_[At(value)] = false;
  }
  void Drop(ValueId value);

  // What becomes of a value that was just made or used.
  void Settle(ValueId value);
  Nanoseconds CopyTime(Bytes bytes, double bytes_per_ns) const;

  // Begins its copy to the host, if there is none; it goes when that has ended.
  void Copy(ValueId value, GapId gap);

  // Drops what has been copied by now, so that nothing waits for a copy.
  void DropCopied();

  // Before which operator each copy back has to begin so that it ends in time: the last one first, each as late as the
  // one after it leaves the engine, and no sooner than there is room until it is used. From a run for which copies took
  // no time.
  void PlanFetches();

  // Begins those, as soon as they fit.
  void FetchDue();
  bool IsOnHost(ValueId value) const {
    const StorageId storage = Of(value).storage;
    return device_[At(storage)] == kNothing && host_[At(storage)] == value;
  }
  void Fetch(ValueId value);

  // Adds to the closure what has to run again so that the value is there.
  bool Find(ValueId value);
  bool Make(const std::vector<ValueId>& wanted);

  // It cannot be made again as things are: this time it stays. Where that happens often, always.
  void Forbid(GapId gap);

  // Runs it for the first time, or again for the present operator of the program.
  bool RunOperator(OperatorId number, bool again);

  // For copies back of what it uses, and to the host of what it overwrites.
  void Wait(const Operator& op);
  void Pin(const std::vector<ValueId>& outputs, int by);

  // What making it again would cost, with what has gone around it: some of it, where that is much.
  Nanoseconds CostOf(ValueId value);
  struct Victim {
    double score;
    ValueId value;
    GapId gap;
  };
  bool IsVictim(ValueId value, GapId gap) const;
  void Sort();

  // The first that is there of what is being copied to the host, or an end: its copy ends first.
  std::vector<std::pair<ValueId, GapId>>::iterator NextCopied();

  // The best of the queue that may go; taken out of it. Nothing: none may.
  std::optional<Victim> NextVictim();
  bool Evict(Bytes bytes);

  const Graph& graph_;
  const Values& values_;
  const Machine machine_;
  std::vector<bool> can_go_;      // by gap; without what is forbidden
  std::vector<int> conflicts_;    // by gap
  std::vector<GapId> forbidden_;  // in the present call
  const FitOptions* options_ = nullptr;
  const std::vector<bool>* hold_ = nullptr;
  Decisions asked_, tried_;
  std::vector<GapAction>* ways_ = nullptr;
  std::vector<OperatorId>* tails_ = nullptr;
  std::vector<OperatorId> helped_;  // by value: the last operator for which something was made again from it
  std::vector<std::pair<ValueId, OperatorId>> missed_;
  Schedule* schedule_ = nullptr;
  std::vector<std::vector<ValueId>> contents_;  // by storage: what it holds, one after the other
  std::vector<ValueId> device_, host_;          // by storage
  std::vector<Nanoseconds> made_,
      copied_;  // by storage: when its contents are complete, and the last copy to the host is
  std::vector<std::pair<ValueId, GapId>> copying_;     // to the host; to go then
  std::vector<std::pair<OperatorId, GapId>> fetches_;  // before which operator they begin, ascending
  size_t next_fetch_ = 0;
  std::vector<GapId> deferred_;  // due; no room yet
  bool copies_take_time_ = true;
  std::vector<Bytes> needs_;         // by operator, as if they took none: the most that is live for it
  std::vector<Nanoseconds> begins_;  // and when it begins, with what runs again for it; or starts_
  std::vector<ValueId> fetch_now_;
  Bytes host_bytes_ = 0;
  std::vector<int32_t> next_use_;  // by value: index of the use after the present operator
  std::vector<int32_t> pins_;      // by value: runs under way that need it
  std::vector<Bytes> bytes_;       // by value
  std::vector<int32_t> slot_;      // by value, in resident_
  std::vector<char> again_;        // by value: is there since it was made again, in the gap that is open
  std::vector<char> in_closure_;
  std::vector<int64_t> seen_;
  std::vector<Nanoseconds> starts_;
  std::vector<std::vector<ValueId>> expires_;
  std::vector<ValueId> resident_, left_, open_;
  std::vector<OperatorId> closure_;
  std::vector<int32_t> taken_;
  std::vector<Victim> queue_;  // the first to go is the last
  size_t since_sorted_ = 0;
  int64_t stamp_ = 0, evictions_ = 0;
  Bytes live_ = 0, peak_ = 0, over_ = 0;
  Nanoseconds clock_ = 0, to_host_ = 0, to_device_ = 0;  // when each engine is through with what was issued
  OperatorId now_ = -1;
  bool again_soon_ = false;  // something was learnt: from the beginning
  bool conflict_ = false;
};

}  // namespace hotpack::remat
