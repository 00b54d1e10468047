// Requests off the short path: from the script after an alignment, from new pages, or by best fit. Also what follows an
// iteration's last request. All functions need the engine's lock; those that take an EngineLock may release it
// meanwhile.
#include <algorithm>

#include "runtime/engine/engine_impl.h"

namespace hotpack {
EngineStatus Engine::Impl::AllocateSlow(EngineLock& lock, EngineRequest request, DeviceAddress* address) {
  if (state_ == EngineState::kDisabled) return EngineStatus::kPassThrough;
  if (pages_.base() == 0) {
    EngineStatus status = OpenArena(lock);
    if (status != EngineStatus::kOk) return status;
  }
  pages_.TrimIdle(lock, interrupts_ > 0 || scripts_.parked(), scripts_.current() ? scripts_.current()->size() : 0);
  if (FailsAgain(request)) return Retry(lock, request, address);
  bool by_script = true;
  if (interrupts_ == 0) {
    ChangeEnvelope();
    if (!envelope_.active()) by_script = MayFollowScript(lock, request);
    request.ordinal = history_.Append(request.units);
    history_.NoteStream(request.ordinal, StreamHint(request.stream));
  }
  const bool monitored = request.ordinal != kUnmonitored;
  blocks_.AddPending(request.units);
  EngineStatus status = EngineStatus::kNotOurs;
  if (monitored && envelope_.active()) {
    status = ServeByEnvelope(lock, request, address);
  } else if (monitored && !warm_.matching() && !warm_.on_trial() &&
             (!scripts_.Follows() || !scripts_.follower().Expects(request.units))) {
    scripts_.MaybeSwitch(request.ordinal);
  }
  if (monitored && scripts_.follower().active() && (by_script || !warm_.in_force())) {
    status = ServeByScript(lock, request, address);
  }
  if (status == EngineStatus::kOk) {
    stats_.NotePlanned();
  } else if (status == EngineStatus::kNotOurs) {
    status = PlaceDynamic(lock, request, address);
    if (status == EngineStatus::kOk) NoteDynamic();
  }
  blocks_.RemovePending(request.units);
  if (status == EngineStatus::kOk) {
    blocks_.CountLive(request.units);
    if (request.displaced) stats_.NoteDisplaced();
  } else {
    if (monitored) envelope_.NoteRelease(history_.Released(request.ordinal), kNone, 0);
    if (monitored && status == EngineStatus::kOutOfMemory) blocks_.failed().Add(request.units);
  }
  if (monitored) {
    scheduler_.MaybeDetect();
    if (warm_.on_trial()) warm_.WatchTrial();
    if (scripts_.NoteLoss() == ScriptSwitcher::Loss::kJustLost) scheduler_.DetectSoon();
  }
  return status;
}

bool Engine::Impl::FailsAgain(const EngineRequest& request) const {
  if (blocks_.failed().empty() || interrupts_ > 0 || !blocks_.failed().Contains(request.units)) return false;
  const Follower& follower = scripts_.follower();
  return !follower.active() || !follower.Expects(request.units);
}

// The last request of this size failed. Another one that fails leaves no trace in the history, so no plan contains it.
// If it succeeds, later ones are monitored again.
EngineStatus Engine::Impl::Retry(EngineLock& lock, const EngineRequest& request, DeviceAddress* address) {
  blocks_.AddPending(request.units);
  const EngineStatus status = PlaceDynamic(lock, request, address);
  blocks_.RemovePending(request.units);
  if (status != EngineStatus::kOk) return status;
  blocks_.CountLive(request.units);
  blocks_.failed().Remove(request.units);
  NoteDynamic();
  return status;
}

EngineStatus Engine::Impl::OpenArena(EngineLock& lock) {
  const MemoryStatus status = pages_.Open(lock);
  if (status != MemoryStatus::kOk) {
    if (status != MemoryStatus::kDeinitialized) state_ = EngineState::kDisabled;  // this device cannot be served
    return EngineStatus::kPassThrough;
  }
  owned_.Set(pages_.base(), pages_.arena().bytes(), guards_ != nullptr);
  return EngineStatus::kOk;
}

// Returns kNotOurs if the request must be placed dynamically.
EngineStatus Engine::Impl::ServeByScript(EngineLock& lock, EngineRequest& request, DeviceAddress* address) {
  Follower& follower = scripts_.follower();
  uint32_t offset = 0;
  Follower::Answer answer{Follower::Outcome::kPlanned, kNone};
  if (!follower.lost() && follower.TryNext(request.units, request.ordinal, &offset)) {
    *address = pages_.AddressOf(offset);
  } else {
    answer = follower.Next(request.units, request.ordinal, history_);
    request.entry = answer.entry;
  }
  switch (answer.outcome) {
    case Follower::Outcome::kPlanned:
      break;
    case Follower::Outcome::kUnmapped:
      if (!pages_.MapEntry(lock, answer.entry, Policy())) {
        request.displaced = true;
        return EngineStatus::kNotOurs;
      }
      break;
    case Follower::Outcome::kDisplaced:
      request.displaced = true;
      return EngineStatus::kNotOurs;
    case Follower::Outcome::kUnplanned:
      scheduler_.NoteUnplanned();
      return EngineStatus::kNotOurs;
    case Follower::Outcome::kOffScript:
      return EngineStatus::kNotOurs;
  }
  if (answer.entry != kNone) *address = pages_.AddressOf(follower.Offset(answer.entry));
  Record(EventKind::kAllocate, request.ordinal, request.bytes, request.stream, *address);
  return EngineStatus::kOk;
}

// Activates a script that waits for its iteration. Returns false if a saved plan's iteration, which the requests are
// compared with, does not go on like this.
bool Engine::Impl::MayFollowScript(EngineLock& lock, const EngineRequest& request) {
  const bool may_follow = !warm_.matching() || warm_.Follow(request.units);
  scheduler_.TryActivate(request.units);
  if (scripts_.TakeReclaimDue()) {
    pages_.ReclaimAddresses(lock);
    // Again: others may have been served meanwhile.
    if (!envelope_.active()) scheduler_.TryActivate(request.units);
  }
  return may_follow;
}

// Follows the envelope's next script, or none, if one is due and nothing stands against it.
void Engine::Impl::ChangeEnvelope() {
  if (!envelope_.change_due() || pages_.zone_pinned() || warm_.matching() || warm_.on_trial()) return;
  if (!envelope_.leaving()) scripts_.ForgetAll();
  envelope_.Change();
}

// Returns kNotOurs if the request must be placed dynamically.
EngineStatus Engine::Impl::ServeByEnvelope(EngineLock& lock, const EngineRequest& request, DeviceAddress* address) {
  DynamicBlock block = BlockOf(request);
  block.envelope_entry = envelope_.Serve(lock, request, Policy(), address);
  if (block.envelope_entry == kNone) return EngineStatus::kNotOurs;
  block.foreign = true;
  blocks_.Add(*address, block);
  Record(EventKind::kAllocate, block.trace_id, request.bytes, request.stream, *address);
  return EngineStatus::kOk;
}

DynamicBlock Engine::Impl::BlockOf(const EngineRequest& request) {
  DynamicBlock block;
  block.bytes = request.units * kBlockUnit;
  block.units = request.units;
  block.entry = request.entry;
  block.ordinal = request.ordinal;
  block.follow_epoch = scripts_.epoch();
  block.trace_id = request.ordinal != kUnmonitored ? request.ordinal : blocks_.NewTraceId();
  return block;
}

EngineStatus Engine::Impl::PlaceDynamic(EngineLock& lock, const EngineRequest& request, DeviceAddress* address) {
  DynamicBlock block = BlockOf(request);
  const bool at_home = request.ordinal != kUnmonitored && scripts_.PlaceAtHome(request.units, address);
  if (!at_home && !pages_.TryAllocate(block.bytes, address)) {
    block.foreign = pages_.PlaceInIdleRange(request, address);
    if (!block.foreign) {
      const EngineStatus status = Grow(lock, request, &block.foreign, address);
      if (status != EngineStatus::kOk) return status;
    }
  }
  blocks_.Add(*address, block);
  Record(EventKind::kAllocate, block.trace_id, request.bytes, request.stream, *address);
  return EngineStatus::kOk;
}

EngineStatus Engine::Impl::Grow(EngineLock& lock, const EngineRequest& request, bool* foreign, DeviceAddress* address) {
  using Status = PageManager::GrowStatus;
  Status status = pages_.Grow(lock, request, Policy(), /*zone_given=*/false, foreign, address);
  if (status == Status::kNeedsZone) {
    scripts_.Park();
    status = pages_.Grow(lock, request, Policy(), /*zone_given=*/true, foreign, address);
  }
  if (status == Status::kOk) return EngineStatus::kOk;
  if (status == Status::kGone) return EngineStatus::kPassThrough;
  // Managed memory is allowed as long as no plan is in force.
  const auto may_spill = [this] { return !scripts_.follower().active() || !stats_.steady(); };
  if (status == Status::kOutOfMemory && spill_.enabled() && !may_spill() && !pages_.zone_pinned()) scripts_.Park();
  return spill_.Allocate(lock, request.units * kBlockUnit, may_spill, address) ? EngineStatus::kOk
                                                                               : EngineStatus::kOutOfMemory;
}

// A request was served by best fit.
void Engine::Impl::NoteDynamic() {
  stats_.NoteDynamic();
  if (scripts_.follower().active()) return;
  if (stats_.dynamic() % RequestTimer::kEvery == 0) attention_.store(true, std::memory_order_relaxed);
  if (stats_.plans() == 0) comparison_.NoteDynamic(stats_.dynamic());
}

GrowthPolicy Engine::Impl::Policy() const {
  GrowthPolicy policy;
  policy.takes_turns = scripts_.switches() > 0 || envelope_.active();
  policy.steady = stats_.steady();
  policy.diverged = scripts_.diverged();
  policy.first_iteration = warm_.InFirstIteration();
  // Blocks carried into a script's first iteration, or into the first one after a divergence, still have their old
  // memory. Blocks not served by script have memory of their own.
  policy.may_wait =
      !policy.first_iteration && scripts_.follower().active() && (scripts_.InFirstCycle() || policy.diverged);
  policy.expected_peak = warm_.ExpectedPeak();
  policy.requests_followed = scripts_.requests_followed();
  return policy;
}

void Engine::Impl::EndIteration(EngineLock& lock) {
  if (warm_.on_trial()) warm_.EndTrial();
  if (!scripts_.current()) return;  // it did not pass
  const bool displaced = scripts_.EndIteration();
  stats_.NoteRetained(blocks_.size());
  const bool improving = scheduler_.Improve(displaced);
  scripts_.CloseIteration();
  // Begins only when no memory is left to give back; with several scripts, only after a change of scripts is over.
  const bool may_begin = !stats_.steady() && !improving && (!displaced || scripts_.switches() == 0);
  if (pages_.NeedsHousekeeping() || may_begin) pages_.Housekeep(lock, Policy());
  pages_.EndIteration();
  if (pages_.fully_mapped() && may_begin) {
    stats_.BeginSteady(pages_.arena().driver_calls());
    pages_.BeginSteady();
  }
  if (stats_.steady() && scripts_.follower().active()) spill_.EndUse(lock, pages_.arena().held());
  MaybeSave();
  scripts_.FollowPredicted();
  FlushStats();
}

// Runs without the lock: the sink writes, and its readers may be slow.
void Engine::Impl::ReportRejected(EngineLock& lock) {
  if (options_.sink == nullptr) return;
  lock.unlock();
  options_.sink->OnRejected();
  lock.lock();
}

}  // namespace hotpack
