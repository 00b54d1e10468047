#include "runtime/engine.h"

#include <unistd.h>

#include <algorithm>

#include "profiler/trace_writer.h"
#include "runtime/engine_impl.h"
#include "runtime/heap_scope.h"

namespace hotpack {

Engine::Impl::Impl(DeviceMemory* memory, const EngineOptions& options, std::atomic<Service>* service)
    : memory_(memory),
      options_(options),
      history_(options.window),
      arena_(memory),
      guards_(options.guard.on() ? std::make_unique<Guards>(memory, options.guard, options.say) : nullptr),
      spill_(memory, options.managed_limit, options.say),
      comparison_(service, options.never_hot_requests),
      recording_(options.trace, options.note_launches, &nodes_),
      planner_([this](const PlanJob& job, const std::atomic<bool>* cancel) { PlanAndNote(job, cancel); }, options.logical_time) {
  attention_ = guards_ != nullptr;
  is_recording_ = recording_.on();
  BeginSaved();
  FlushStats();
}

// Whether requests and releases may take the short way: nothing to be recorded, activated, or aligned.
void Engine::Impl::UpdateFast() {
  fast_release_ = follower_.active() && !recording_.on();
  fast_ = fast_release_ && !follower_.lost() && !pending_ && !saved_ && interrupts_ == 0;
}

inline EngineStatus Engine::Impl::Allocate(uint64_t bytes, uint32_t stream, DeviceAddress* address, ReuseAfter* after) {
  if (bytes - 1 >= kMaxRequestBytes || attention_.load(std::memory_order_relaxed)) [[unlikely]] {
    return AllocateTimed(bytes, stream, address, after);
  }
  return AllocateNow(bytes, stream, address, after);
}

inline EngineStatus Engine::Impl::AllocateNow(uint64_t bytes, uint32_t stream, DeviceAddress* address, ReuseAfter* after) {
  uint32_t units = UnitsOf(bytes);
  mutex_.lock();
  uint32_t offset = 0;
  if (!fast_ || !follower_.TryNext(units, history_.Count(), &offset)) [[unlikely]] {
    return AllocateNext({bytes, units, stream, after}, address);
  }
  history_.Append(units);
  CountLive(units);
  *address = AddressOf(offset);
  if (!stamps_.empty()) [[unlikely]] TakeStamps(*address, units, after);
  if ((++planned_ % RequestTimer::kEvery) == 0 || follower_.ended()) [[unlikely]] {
    AfterLast();
  } else {
    mutex_.unlock();
  }
  return EngineStatus::kOk;
}

// Sizes that cannot be, a forked child, and the request that is to be timed.
EngineStatus Engine::Impl::AllocateTimed(uint64_t bytes, uint32_t stream, DeviceAddress* address, ReuseAfter* after) {
  if (bytes == 0) return EngineStatus::kInvalidValue;
  if (bytes > kMaxRequestBytes) return EngineStatus::kOutOfMemory;
  if (abandoned()) return EngineStatus::kPassThrough;
  if (guards_) {
    const uint64_t padded = guards_->Padded(bytes);
    EngineStatus status = padded <= kMaxRequestBytes ? AllocateNow(padded, stream, address, after) : EngineStatus::kOutOfMemory;
    if (status == EngineStatus::kOk) *address = GiveGuarded(*address, bytes);
    return status;
  }
  attention_.store(false);
  if (abandoned()) {  // just now: its mark must not be lost
    attention_.store(true);
    return EngineStatus::kPassThrough;
  }
  int64_t start = RequestTimer::Now();
  EngineStatus status = Allocate(bytes, stream, address, after);
  int64_t took = RequestTimer::Now() - start;
  Lock lock(mutex_);
  if (fast_) {
    timer_.Add(took);
  } else if (!follower_.active()) {
    comparison_.AddTime(took);
  }
  return status;
}

// The lock is held: the request just served was an iteration's last, or it is time for a sample.
void Engine::Impl::AfterLast() noexcept {
  AfterLastLocked();
  WaitLogical();
}

void Engine::Impl::AfterLastLocked() noexcept try {
  Lock lock(mutex_, std::adopt_lock);
  if (planned_ % RequestTimer::kEvery == 0 && !abandoned_.load(std::memory_order_relaxed)) {
    attention_.store(true, std::memory_order_relaxed);
  }
  if (!follower_.ended()) return;
  HeapScope heap(this);
  EndIteration(lock);
  UpdateFast();
} catch (...) {
  GiveUp();
}

// The lock is held.
EngineStatus Engine::Impl::AllocateNext(Want want, DeviceAddress* address) noexcept {
  const EngineStatus status = AllocateLocked(want, address);
  WaitLogical();
  return status;
}

EngineStatus Engine::Impl::AllocateLocked(const Want& want, DeviceAddress* address) noexcept try {
  Lock lock(mutex_, std::adopt_lock);
  if (abandoned()) return EngineStatus::kPassThrough;
  HeapScope heap(this);
  EngineStatus status = AllocateSlow(lock, want, address);
  if (status == EngineStatus::kOk && !stamps_.empty()) {
    ReuseAfter nobody_asks;
    stamps_.Take(*address, *address + want.units * kUnitBytes, want.after != nullptr ? want.after : &nobody_asks);
  }
  if (follower_.ended()) EndIteration(lock);
  UpdateFast();
  if (others_ % 64 == 0) FlushStats();
  if (tell_not_used_) TellNotUsed(lock);
  return status;
} catch (...) {
  GiveUp();
  return EngineStatus::kPassThrough;
}

EngineStatus Engine::Impl::AllocateSlow(Lock& lock, Want want, DeviceAddress* address) {
  if (broken_) return EngineStatus::kPassThrough;
  if (base_ == 0) {  // (the arena's own is written without the lock)
    EngineStatus status = OpenArena(lock);
    if (status != EngineStatus::kOk) return status;
  }
  MaybeTrimIdle(lock);
  bool by_script = true;
  if (interrupts_ == 0) {
    if (saved_) by_script = FollowSaved(want.units);
    if (pending_) TryActivate(want.units);
    if (room_due_) {
      MakeRoom(lock);
      if (pending_) TryActivate(want.units);  // others may have been served meanwhile: all is looked at again
    }
    want.ordinal = history_.Append(want.units);
  }
  live_units_ += want.units;
  EngineStatus status = EngineStatus::kNotOurs;
  if (want.ordinal != kUnmonitored && !saved_ && !on_trial_ &&
      (!follower_.active() || follower_.lost() || !follower_.Expects(want.units))) {
    MaybeSwitch(want.ordinal);
  }
  if (want.ordinal != kUnmonitored && follower_.active() && (by_script || !saved_in_force_)) status = ServeByScript(lock, want, address);
  if (status == EngineStatus::kOk) {
    ++planned_;
  } else if (status == EngineStatus::kNotOurs) {
    status = PlaceDynamic(lock, want, address);
    if (status == EngineStatus::kOk) {
      ++others_;
      AfterDynamic();
    }
  }
  if (status == EngineStatus::kOk) {
    live_peak_units_ = std::max(live_peak_units_, live_units_);
    if (want.displaced) ++displaced_;
  } else {
    live_units_ -= want.units;
    if (want.ordinal != kUnmonitored) history_.Released(want.ordinal);
  }
  if (want.ordinal != kUnmonitored) {
    MaybeDetect();
    if (on_trial_) WatchTrial();
    MaybePark();
  }
  return status;
}

// kNotOurs: to be placed dynamically.
EngineStatus Engine::Impl::ServeByScript(Lock& lock, Want& want, DeviceAddress* address) {
  uint32_t offset = 0;
  Follower::Answer answer{Follower::Outcome::kPlanned, kNone};
  if (!follower_.lost() && follower_.TryNext(want.units, want.ordinal, &offset)) {
    *address = AddressOf(offset);
  } else {
    answer = follower_.Next(want.units, want.ordinal, history_);
    want.entry = answer.entry;
  }
  switch (answer.outcome) {
    case Follower::Outcome::kPlanned:
      break;
    case Follower::Outcome::kUnmapped:
      if (MapEntry(lock, answer.entry) != EngineStatus::kOk) {
        want.displaced = true;
        return EngineStatus::kNotOurs;
      }
      break;
    case Follower::Outcome::kDisplaced:
      want.displaced = true;
      return EngineStatus::kNotOurs;
    case Follower::Outcome::kUnplanned:
    case Follower::Outcome::kOffScript:
      return EngineStatus::kNotOurs;
  }
  if (answer.entry != kNone) *address = AddressOf(follower_.Offset(answer.entry));
  Record(EventKind::kAllocate, want.ordinal, want.bytes, want.stream, *address);
  return EngineStatus::kOk;
}

EngineStatus Engine::Impl::PlaceDynamic(Lock& lock, const Want& want, DeviceAddress* address) {
  DynamicBlock block;
  block.bytes = want.units * kUnitBytes;
  block.units = want.units;
  block.entry = want.entry;
  block.ordinal = want.ordinal;
  block.taken_up = taken_up_;
  block.trace_id = want.ordinal != kUnmonitored ? want.ordinal : (uint64_t{1} << 63) + next_trace_id_++;
  if (!arena_.TryAllocate(block.bytes, address)) {
    block.foreign = PlaceInHole(want, address);
    if (!block.foreign) {
      EngineStatus status = Grow(lock, want, &block.foreign, address);
      if (status == EngineStatus::kOutOfMemory && Spill(lock, block.bytes, address)) status = EngineStatus::kOk;
      if (status != EngineStatus::kOk) return status;
    }
  }
  dynamic_.emplace(*address, block);
  Record(EventKind::kAllocate, block.trace_id, want.bytes, want.stream, *address);
  return EngineStatus::kOk;
}

// The lock is held: several streams are used, and the block's memory was somebody's before.
void Engine::Impl::TakeStamps(DeviceAddress address, uint32_t units, ReuseAfter* after) noexcept {
  HeapScope heap(this);
  ReuseAfter nobody_asks;
  stamps_.Take(address, address + units * kUnitBytes, after != nullptr ? after : &nobody_asks);
}

// The lock is held.
void Engine::Impl::PutStamps(DeviceAddress address, uint64_t units, const ReuseAfter& after) noexcept {
  HeapScope heap(this);
  stamps_.Put(address, address + units * kUnitBytes, after);
}

void Engine::Impl::SettleReuse(uint64_t tick) {
  if (abandoned()) return;
  Lock lock(mutex_);
  stamps_.Settle(tick);
}

void Engine::Impl::StampReleasesSoFar(uint64_t tick) {
  if (abandoned()) return;
  Lock lock(mutex_);
  stamps_.PutEverywhere(tick);
}

inline EngineStatus Engine::Impl::Release(DeviceAddress address, uint32_t stream, const ReuseAfter* after) {
  if (!InArena(address)) [[unlikely]] return ReleaseBeside(address, stream, after);
  if (abandoned()) [[unlikely]] return EngineStatus::kOk;
  mutex_.lock();
  uint64_t units = 0;
  bool released = fast_release_ && address % kUnitBytes == 0 && follower_.TryRelease(OffsetOf(address), &history_, &units);
  if (!released) [[unlikely]] return ReleaseSlow(address, stream, after);
  live_units_ -= units;
  if (after != nullptr) [[unlikely]] PutStamps(address, units, *after);
  mutex_.unlock();
  return EngineStatus::kOk;
}

bool Engine::Impl::OwnsBeside(DeviceAddress address) const {
  DeviceAddress base = guarded_base_.load(std::memory_order_acquire);
  if (base != 0 && address - base < owned_bytes_.load(std::memory_order_relaxed)) return true;
  return spill_.Owns(address);
}

EngineStatus Engine::Impl::ReleaseBeside(DeviceAddress address, uint32_t stream, const ReuseAfter* after) {
  if (!OwnsBeside(address)) return EngineStatus::kNotOurs;
  if (abandoned()) return EngineStatus::kOk;
  if (guards_) return ReleaseGuarded(address, stream, after);
  mutex_.lock();
  return ReleaseSlow(address, stream, after);
}

// The lock is held.
EngineStatus Engine::Impl::ReleaseSlow(DeviceAddress address, uint32_t stream, const ReuseAfter* after) noexcept try {
  Lock lock(mutex_, std::adopt_lock);
  if (abandoned()) return EngineStatus::kOk;
  bool by_script = follower_.active() && address % kUnitBytes == 0 && InReservation(address);
  uint32_t entry = by_script ? follower_.LiveAt(OffsetOf(address)) : kNone;
  if (entry == kNone) return ReleaseDynamic(address, stream, after);
  uint64_t ordinal = follower_.Ordinal(entry);
  uint32_t age = history_.Released(ordinal);
  NoteLife(age);
  follower_.NoteAge(entry, age);
  live_units_ -= follower_.Units(entry);
  if (after != nullptr) PutStamps(address, follower_.Units(entry), *after);
  Record(EventKind::kRelease, ordinal, follower_.Units(entry) * kUnitBytes, stream, address);
  follower_.Release(entry);
  return EngineStatus::kOk;
} catch (...) {
  GiveUp();
  return EngineStatus::kOk;
}

EngineStatus Engine::Impl::ReleaseDynamic(DeviceAddress address, uint32_t stream, const ReuseAfter* after) {
  HeapScope heap(this);
  auto it = dynamic_.find(address);
  if (it == dynamic_.end()) return EngineStatus::kInvalidValue;
  const DynamicBlock block = it->second;
  dynamic_.erase(it);
  live_units_ -= block.units;
  if (after != nullptr) stamps_.Put(address, address + block.units * kUnitBytes, *after);
  if (block.ordinal != kUnmonitored) {
    uint32_t age = history_.Released(block.ordinal);
    NoteLife(age);
    if (block.entry != kNone && follower_.active() && block.taken_up == taken_up_) {
      follower_.NoteAge(block.entry, age);
    }
  }
  if (block.foreign) {
    follower_.RemoveForeign(OffsetOf(address), OffsetOf(address + block.bytes));
    FreeOutside({address, block.bytes});
  } else if (InReservation(address)) {
    arena_.Free(address, block.bytes);
  } else {
    spill_.Free(address, block.bytes);
  }
  Record(EventKind::kRelease, block.trace_id, block.units * kUnitBytes, stream, address);
  return EngineStatus::kOk;
}

void Engine::Impl::Interrupt() {
  if (abandoned()) return;
  Lock lock(mutex_);
  ++interrupts_;
  Record(EventKind::kInterrupt, 0, 0, 0);
  UpdateFast();
}

void Engine::Impl::Resume() {
  if (abandoned()) return;
  Lock lock(mutex_);
  if (interrupts_ > 0) --interrupts_;
  Record(EventKind::kResume, 0, 0, 0);
  UpdateFast();
}

void Engine::Impl::NotePassedThrough() {
  if (abandoned()) return;
  Lock lock(mutex_);
  ++passed_through_;
}

void Engine::Impl::Record(EventKind kind, uint64_t id, uint64_t bytes, uint32_t stream, DeviceAddress address) {
  if (!recording_.on()) [[likely]] return;
  recording_.Add(kind, id, bytes, stream & ~kStreamOrdered, (stream & kStreamOrdered) != 0, address);
}

// A handler of a signal that came in the middle of a request may have called exit(): the lock is then this thread's own
// for ever, and the last figures are lost rather than the process.
void Engine::Impl::Finish() {
  if (abandoned()) return;
  constexpr int64_t kPackAtTheEnd = 50'000'000;  // ns
  constexpr int kTries = 200;
  Lock lock(mutex_, std::defer_lock);
  for (int i = 0; i < kTries && !lock.try_lock(); ++i) usleep(1000);
  if (!lock.owns_lock()) return;
  lock.unlock();
  Save(kPackAtTheEnd);
  lock.lock();
  FlushStats();
  if (!recording_.on()) return;
  EndRecording();
  UpdateFast();
}

void Engine::Impl::Retire() {
  {
    std::lock_guard growth(growth_);  // changes of pages that are under way end first; later ones do nothing
    GiveUp();
  }
  planner_.Detach();
  immortal_ = true;
}

// What goes out of the engine is an answer, never an exception: the callers are C functions of somebody else's program.
// A bad_alloc can come from the middle of any change, so the state is not trusted any more. Every later request takes the
// slow way, and there finds that the engine is abandoned.
void Engine::Impl::GiveUp() {
  Lock lock(mutex_);
  if (abandoned()) return;
  FlushStats();
  EndRecording();
  abandoned_ = true;
  attention_ = true;
  fast_ = fast_release_ = false;
}

// No lock: the thread that held it may not exist in this process.
void Engine::Impl::AbandonAfterFork() {
  immortal_ = true;
  abandoned_ = true;
  attention_ = true;
  is_recording_ = false;
  planner_.Abandon();
}

Engine::Engine(DeviceMemory* memory, const EngineOptions& options) : impl_(std::make_unique<Impl>(memory, options, &service_)) {}
Engine::~Engine() {
  if (impl_->immortal()) (void)impl_.release();  // a thread, or locks of another process, go on using it
}

// Of the functions below, those that can throw at all do so only in their rare parts, which catch themselves.
EngineStatus Engine::Allocate(uint64_t bytes, uint32_t stream, DeviceAddress* address, ReuseAfter* after) {
  return impl_->Allocate(bytes, stream, address, after);
}
EngineStatus Engine::Release(DeviceAddress address, uint32_t stream, const ReuseAfter* after) {
  return impl_->Release(address, stream, after);
}
void Engine::SettleReuse(uint64_t tick) { impl_->SettleReuse(tick); }
void Engine::StampReleasesSoFar(uint64_t tick) { impl_->StampReleasesSoFar(tick); }
void Engine::NoteStreamOrder(const StreamOrderCost& cost) { impl_->NoteStreamOrder(cost); }
bool Engine::Owns(DeviceAddress address) const { return impl_->Owns(address); }
bool Engine::FindBlock(DeviceAddress address, DeviceAddress* base, uint64_t* bytes, uint64_t* id) try {
  return impl_->FindBlock(address, base, bytes, id);
} catch (...) {
  return false;  // it only reads
}
bool Engine::Reservation(DeviceAddress* base, uint64_t* bytes) const { return impl_->Reservation(base, bytes); }
EngineUsage Engine::Usage() { return impl_->Usage(); }
void Engine::List(std::vector<Extent>* blocks, std::vector<Extent>* mapped) try {
  impl_->List(blocks, mapped);
} catch (...) {
  blocks->clear();  // the host has no memory for the lists
  mapped->clear();
}
void Engine::ResetPeak() { impl_->ResetPeak(); }
uint64_t Engine::Trim(uint64_t wanted) try {
  return impl_->Trim(wanted);
} catch (...) {
  impl_->GiveUp();
  return 0;
}
void Engine::Mark() try {
  impl_->Mark();
  impl_->WaitLogical();
} catch (...) {
  impl_->GiveUp();
}
void Engine::Interrupt() { impl_->Interrupt(); }
void Engine::Resume() { impl_->Resume(); }
bool Engine::WaitPlan(int timeout_ms) { return impl_->WaitPlan(timeout_ms); }
uint64_t Engine::CheckGuards() { return impl_->CheckGuards(); }
bool Engine::BeginComparison(uint64_t* median_ns) { return impl_->BeginComparison(median_ns); }
void Engine::LeaveToDriver() { impl_->LeaveToDriver(); }
void Engine::NotePassedThrough() { impl_->NotePassedThrough(); }
hotpack_stats Engine::Stats() { return impl_->Stats(); }
std::shared_ptr<const SavedPlan> Engine::PlanToSave() {
  return impl_->PlanToSave(impl_->plan_time_limit_ns());
}
void Engine::Finish() try {
  impl_->Finish();
} catch (...) {  // no host memory for a plan to be kept
}
void Engine::Retire() { impl_->Retire(); }
void Engine::AbandonAfterFork() { impl_->AbandonAfterFork(); }

}  // namespace hotpack
