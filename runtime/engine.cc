#include "runtime/engine.h"

#include <algorithm>

#include "profiler/trace_writer.h"
#include "runtime/engine_impl.h"
#include "runtime/heap_scope.h"

namespace hotpack {

Engine::Impl::Impl(DeviceMemory* memory, const EngineOptions& options)
    : memory_(memory),
      options_(options),
      history_(options.window),
      arena_(memory),
      planner_([this](const PlanJob& job, const std::atomic<bool>* cancel) { Plan(job, cancel); }) {
  FlushStats();
}

// Whether requests and releases may take the short way: nothing to be recorded, activated, or aligned.
void Engine::Impl::UpdateFast() {
  fast_release_ = follower_.active() && options_.trace == nullptr;
  fast_ = fast_release_ && !follower_.lost() && !pending_ && interrupts_ == 0;
}

inline EngineStatus Engine::Impl::Allocate(uint64_t bytes, uint32_t stream, DeviceAddress* address) {
  if (bytes - 1 >= kMaxRequestBytes || attention_.load(std::memory_order_relaxed)) [[unlikely]] {
    return AllocateTimed(bytes, stream, address);
  }
  uint32_t units = UnitsOf(bytes);
  mutex_.lock();
  uint32_t offset = 0;
  if (!fast_ || !follower_.TryNext(units, history_.Count(), &offset)) [[unlikely]] {
    return AllocateNext(bytes, units, stream, address);
  }
  history_.Append(units);
  CountLive(units);
  *address = AddressOf(offset);
  if ((++planned_ % RequestTimer::kEvery) == 0 || follower_.ended()) [[unlikely]] {
    AfterLast();
  } else {
    mutex_.unlock();
  }
  return EngineStatus::kOk;
}

// Sizes that cannot be, a forked child, and the request that is to be timed.
EngineStatus Engine::Impl::AllocateTimed(uint64_t bytes, uint32_t stream, DeviceAddress* address) {
  if (bytes == 0) return EngineStatus::kInvalidValue;
  if (bytes > kMaxRequestBytes) return EngineStatus::kOutOfMemory;
  if (abandoned()) return EngineStatus::kPassThrough;
  attention_.store(false, std::memory_order_relaxed);
  int64_t start = RequestTimer::Now();
  EngineStatus status = Allocate(bytes, stream, address);
  int64_t took = RequestTimer::Now() - start;
  Lock lock(mutex_);
  if (fast_) timer_.Add(took);
  return status;
}

// The lock is held: the request just served was an iteration's last, or it is time for a sample.
void Engine::Impl::AfterLast() {
  Lock lock(mutex_, std::adopt_lock);
  if (planned_ % RequestTimer::kEvery == 0 && !abandoned_.load(std::memory_order_relaxed)) {
    attention_.store(true, std::memory_order_relaxed);
  }
  if (!follower_.ended()) return;
  HeapScope heap(this);
  EndIteration(lock);
  UpdateFast();
}

// The lock is held.
EngineStatus Engine::Impl::AllocateNext(uint64_t bytes, uint32_t units, uint32_t stream, DeviceAddress* address) {
  Lock lock(mutex_, std::adopt_lock);
  HeapScope heap(this);
  EngineStatus status = AllocateSlow(lock, {bytes, units, stream}, address);
  if (follower_.ended()) EndIteration(lock);
  UpdateFast();
  if (others_ % 64 == 0) FlushStats();
  return status;
}

EngineStatus Engine::Impl::AllocateSlow(Lock& lock, Want want, DeviceAddress* address) {
  if (broken_) return EngineStatus::kPassThrough;
  if (base_ == 0) {  // (the arena's own is written without the lock)
    EngineStatus status = OpenArena(lock);
    if (status != EngineStatus::kOk) return status;
  }
  if (interrupts_ == 0) {
    if (pending_) TryActivate(want.units);
    if (room_due_) {
      MakeRoom(lock);
      if (pending_) TryActivate(want.units);  // others may have been served meanwhile: all is looked at again
    }
    want.ordinal = history_.Append(want.units);
  }
  live_units_ += want.units;
  EngineStatus status = EngineStatus::kNotOurs;
  if (want.ordinal != kUnmonitored && (!follower_.active() || follower_.lost() || !follower_.Expects(want.units))) {
    MaybeSwitch(want.ordinal);
  }
  if (want.ordinal != kUnmonitored && follower_.active()) status = ServeByScript(lock, want, address);
  if (status == EngineStatus::kOk) {
    ++planned_;
  } else if (status == EngineStatus::kNotOurs) {
    status = PlaceDynamic(lock, want, address);
    if (status == EngineStatus::kOk) ++others_;
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
  Record(EventKind::kAllocate, want.ordinal, want.bytes, want.stream);
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
      if (status != EngineStatus::kOk) return status;
    }
  }
  dynamic_.emplace(*address, block);
  Record(EventKind::kAllocate, block.trace_id, want.bytes, want.stream);
  return EngineStatus::kOk;
}

inline EngineStatus Engine::Impl::Release(DeviceAddress address, uint32_t stream) {
  if (!Owns(address)) return EngineStatus::kNotOurs;
  if (abandoned()) [[unlikely]] return EngineStatus::kOk;
  mutex_.lock();
  uint64_t units = 0;
  bool released = fast_release_ && address % kUnitBytes == 0 && follower_.TryRelease(OffsetOf(address), &history_, &units);
  if (!released) [[unlikely]] return ReleaseSlow(address, stream);
  live_units_ -= units;
  mutex_.unlock();
  return EngineStatus::kOk;
}

// The lock is held.
EngineStatus Engine::Impl::ReleaseSlow(DeviceAddress address, uint32_t stream) {
  Lock lock(mutex_, std::adopt_lock);
  bool by_script = follower_.active() && address % kUnitBytes == 0;
  uint32_t entry = by_script ? follower_.LiveAt(OffsetOf(address)) : kNone;
  if (entry == kNone) return ReleaseDynamic(address, stream);
  uint64_t ordinal = follower_.Ordinal(entry);
  uint32_t age = history_.Released(ordinal);
  NoteLife(age);
  follower_.NoteAge(entry, age);
  live_units_ -= follower_.Units(entry);
  Record(EventKind::kRelease, ordinal, follower_.Units(entry) * kUnitBytes, stream);
  follower_.Release(entry);
  return EngineStatus::kOk;
}

EngineStatus Engine::Impl::ReleaseDynamic(DeviceAddress address, uint32_t stream) {
  HeapScope heap(this);
  auto it = dynamic_.find(address);
  if (it == dynamic_.end()) return EngineStatus::kInvalidValue;
  const DynamicBlock block = it->second;
  dynamic_.erase(it);
  live_units_ -= block.units;
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
  } else {
    arena_.Free(address, block.bytes);
  }
  Record(EventKind::kRelease, block.trace_id, block.units * kUnitBytes, stream);
  return EngineStatus::kOk;
}

bool Engine::Impl::FindBlock(DeviceAddress address, DeviceAddress* base, uint64_t* bytes) {
  if (!Owns(address) || abandoned()) return false;
  Lock lock(mutex_);
  if (follower_.active()) {
    uint32_t offset = OffsetOf(address);
    for (const Follower::Range& range : follower_.LiveRanges()) {
      if (range.entry == kNone || offset < range.begin || offset >= range.end) continue;
      *base = AddressOf(range.begin);
      *bytes = follower_.Units(range.entry) * kUnitBytes;
      return true;
    }
  }
  auto it = dynamic_.upper_bound(address);
  if (it == dynamic_.begin()) return false;
  --it;
  if (address >= it->first + it->second.bytes) return false;
  *base = it->first;
  *bytes = it->second.units * kUnitBytes;
  return true;
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

void Engine::Impl::Record(EventKind kind, uint64_t id, uint64_t bytes, uint32_t stream) {
  if (options_.trace == nullptr) [[likely]] return;
  Event event;
  event.kind = kind;
  event.id = id;
  event.bytes = bytes;
  event.stream = stream & ~kStreamOrdered;
  event.flags = (stream & kStreamOrdered) != 0 ? kEventAsync : 0;
  auto now = static_cast<uint64_t>(RequestTimer::Now());
  if (trace_start_ns_ == 0) trace_start_ns_ = now;
  event.time_ns = now - trace_start_ns_;
  options_.trace->Append(event);
}

void Engine::Impl::Finish() {
  if (abandoned()) return;
  Lock lock(mutex_);
  FlushStats();
  if (options_.trace == nullptr) return;
  options_.trace->Close();
  options_.trace = nullptr;
  UpdateFast();
}

// No lock: the thread that held it may not exist in this process.
void Engine::Impl::AbandonAfterFork() {
  abandoned_ = true;
  attention_ = true;
  planner_.Abandon();
}

Engine::Engine(DeviceMemory* memory, const EngineOptions& options) : impl_(std::make_unique<Impl>(memory, options)) {}
Engine::~Engine() {
  if (impl_->abandoned()) (void)impl_.release();  // its thread and its locks are another process's
}
EngineStatus Engine::Allocate(uint64_t bytes, uint32_t stream, DeviceAddress* address) {
  return impl_->Allocate(bytes, stream, address);
}
EngineStatus Engine::Release(DeviceAddress address, uint32_t stream) { return impl_->Release(address, stream); }
bool Engine::Owns(DeviceAddress address) const { return impl_->Owns(address); }
bool Engine::FindBlock(DeviceAddress address, DeviceAddress* base, uint64_t* bytes) {
  return impl_->FindBlock(address, base, bytes);
}
void Engine::Mark() { impl_->Mark(); }
void Engine::Interrupt() { impl_->Interrupt(); }
void Engine::Resume() { impl_->Resume(); }
bool Engine::WaitPlan(int timeout_ms) { return impl_->WaitPlan(timeout_ms); }
void Engine::NotePassedThrough() { impl_->NotePassedThrough(); }
hotpack_stats Engine::Stats() { return impl_->Stats(); }
void Engine::Finish() { impl_->Finish(); }
void Engine::AbandonAfterFork() { impl_->AbandonAfterFork(); }

}  // namespace hotpack
