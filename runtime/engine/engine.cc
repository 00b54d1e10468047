#include "runtime/engine/engine.h"

#include <unistd.h>

#include <algorithm>

#include "runtime/engine/engine_impl.h"

namespace hotpack {
namespace {

// Returns the plan to begin with; null if its large blocks would lie at other places than the options demand.
std::shared_ptr<const SavedPlan> AlignedPlan(const EngineOptions& options) {
  const bool usable = options.plan != nullptr && IsAligned(*options.plan, options.large_alignment);
  return usable ? options.plan : nullptr;
}

}  // namespace

Engine::Impl::Impl(DeviceMemory* memory, const EngineOptions& options, std::atomic<Service>* service,
                   std::atomic<bool>* steady)
    : memory_(memory),
      options_(options),
      steady_(steady),
      history_(options.window),
      guards_(options.guard.on() ? std::make_unique<Guards>(memory, options.guard, options.log) : nullptr),
      spill_(memory, options.managed_limit, options.log),
      stats_(options.stats),
      blocks_(&nodes_),
      scripts_(&history_, &pages_, &blocks_, &stats_, &fast_, options.load),
      pages_(memory, &abandoned_, &scripts_.follower(), &blocks_, options.page_wait_us),
      envelope_(&pages_, &blocks_, &stats_, options.envelopes && !memory->Fixed()),
      stamps_(&nodes_),
      recording_(options.trace, options.note_launches, &nodes_),
      comparison_(service, options.never_hot_requests),
      warm_(AlignedPlan(options), memory->TotalBytes(), &history_, &pages_, &scripts_, &stats_, &saver_),
      scheduler_({&mutex_, &history_, &pages_, &blocks_, &scripts_, &stats_, &spill_, &envelope_},
                 options.plan_time_limit_ns, options.logical_time, options.stream_edges,
                 [this] { Save(options_.plan_time_limit_ns); }) {
  attention_ = guards_ != nullptr;
  pages_.SetLargeAlignment(options.large_alignment);
  FlushStats();
}

EngineState Engine::Impl::StateNow() const {
  if (state_ == EngineState::kDisabled) return state_;
  const Follower& follower = scripts_.follower();
  if (envelope_.active()) return EngineState::kEnvelope;
  if (!follower.active()) return scripts_.parked() ? EngineState::kParked : EngineState::kObserving;
  if (follower.lost()) return EngineState::kLost;
  if (warm_.on_trial()) return EngineState::kTrial;
  return stats_.steady() ? EngineState::kSteady : EngineState::kSettling;
}

// The short path is open while a script is followed and no recording, activation or alignment is due.
void Engine::Impl::UpdateState() {
  state_ = StateNow();
  steady_->store(state_ == EngineState::kSteady, std::memory_order_relaxed);
  const bool follows =
      state_ == EngineState::kTrial || state_ == EngineState::kSettling || state_ == EngineState::kSteady;
  fast_.Set((follows || state_ == EngineState::kLost) && !recording_.on(),
            follows && !scripts_.pending() && !warm_.matching() && interrupts_ == 0);
  const bool serves = state_ == EngineState::kEnvelope && interrupts_ == 0 && blocks_.failed().empty();
  fast_.SetEnvelope(state_ == EngineState::kEnvelope && !recording_.on(), serves ? scheduler_.EnvelopePatience() : 0);
}

inline EngineStatus Engine::Impl::Allocate(uint64_t bytes, uint32_t stream, DeviceAddress* address, ReuseAfter* after) {
  if (bytes - 1 >= kMaxRequestBytes || attention_.load(std::memory_order_relaxed)) [[unlikely]] {
    return AllocateTimed(bytes, stream, address, after);
  }
  return AllocateNow(bytes, stream, address, after);
}

inline EngineStatus Engine::Impl::AllocateNow(uint64_t bytes, uint32_t stream, DeviceAddress* address,
                                              ReuseAfter* after) {
  uint32_t units = UnitsOf(bytes);
  mutex_.lock();
  uint32_t offset = 0;
  if (!fast_.requests() || !scripts_.follower().TryNext(units, history_.Count(), &offset)) [[unlikely]] {
    return AllocateNext(bytes, stream, address, after);
  }
  history_.Append(units);
  blocks_.CountLive(units);
  *address = pages_.AddressOf(offset);
  if (!stamps_.empty()) [[unlikely]]
    TakeStamps(*address, units, after);
  if ((stats_.NotePlanned() % RequestTimer::kEvery) == 0 || scripts_.follower().ended()) [[unlikely]] {
    AfterLast();
  } else {
    mutex_.unlock();
  }
  return EngineStatus::kOk;
}

// Handles invalid sizes, a forked child, and the request that is timed.
EngineStatus Engine::Impl::AllocateTimed(uint64_t bytes, uint32_t stream, DeviceAddress* address, ReuseAfter* after) {
  if (bytes == 0) return EngineStatus::kInvalidValue;
  if (bytes > kMaxRequestBytes) return EngineStatus::kOutOfMemory;
  if (abandoned()) return EngineStatus::kPassThrough;
  if (guards_) {
    const uint64_t padded = guards_->Padded(bytes);
    EngineStatus status =
        padded <= kMaxRequestBytes ? AllocateNow(padded, stream, address, after) : EngineStatus::kOutOfMemory;
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
  EngineLock lock(mutex_);
  if (fast_.requests()) {
    stats_.AddTime(took);
  } else if (!scripts_.follower().active()) {
    comparison_.AddTime(took);
  }
  return status;
}

// Needs the lock. The request just served was an iteration's last, or a sample is due.
void Engine::Impl::AfterLast() noexcept {
  AfterLastLocked();
  WaitLogical();
}

void Engine::Impl::AfterLastLocked() noexcept try {
  EngineLock lock(mutex_, std::adopt_lock);
  if (stats_.planned() % RequestTimer::kEvery == 0 && !abandoned_.load(std::memory_order_relaxed)) {
    attention_.store(true, std::memory_order_relaxed);
  }
  if (!scripts_.follower().ended()) return;
  EngineStats::HeapScope heap(&stats_);
  EndIteration(lock);
  UpdateState();
} catch (...) {
  GiveUp();
}

// Needs the lock. No script serves the request. The usual one of an envelope is served here.
EngineStatus Engine::Impl::AllocateNext(uint64_t bytes, uint32_t stream, DeviceAddress* address,
                                        ReuseAfter* after) noexcept {
  const uint32_t units = UnitsOf(bytes);
  const uint64_t ordinal = history_.Count();
  if (!fast_.envelope_requests(ordinal) || !envelope_.TryServe(units, ordinal, address)) [[unlikely]] {
    return AllocateElse(bytes, stream, address, after);
  }
  history_.Append(units);
  if (stream != 0 || history_.HasStreams()) [[unlikely]]
    history_.NoteStream(ordinal, StreamHint(stream));
  blocks_.CountLive(units);
  stats_.NotePlanned();
  if (!stamps_.empty()) [[unlikely]]
    TakeStamps(*address, units, after);
  mutex_.unlock();
  return EngineStatus::kOk;
}

// Needs the lock.
EngineStatus Engine::Impl::AllocateElse(uint64_t bytes, uint32_t stream, DeviceAddress* address,
                                        ReuseAfter* after) noexcept {
  const EngineStatus status = AllocateLocked({bytes, UnitsOf(bytes), stream, after}, address);
  WaitLogical();
  return status;
}

EngineStatus Engine::Impl::AllocateLocked(const EngineRequest& request, DeviceAddress* address) noexcept try {
  EngineLock lock(mutex_, std::adopt_lock);
  if (abandoned()) return EngineStatus::kPassThrough;
  EngineStats::HeapScope heap(&stats_);
  EngineStatus status = AllocateSlow(lock, request, address);
  if (status == EngineStatus::kOk && !stamps_.empty()) {
    ReuseAfter unasked;
    stamps_.Take(*address, *address + request.units * kBlockUnit, request.after != nullptr ? request.after : &unasked);
  }
  if (scripts_.follower().ended()) EndIteration(lock);
  UpdateState();
  if (stats_.dynamic() % 64 == 0) FlushStats();
  if (warm_.TakeRejected()) ReportRejected(lock);
  return status;
} catch (...) {
  GiveUp();
  return EngineStatus::kPassThrough;
}

// Needs the lock. Several streams are used, and an earlier block lay at this memory.
void Engine::Impl::TakeStamps(DeviceAddress address, uint32_t units, ReuseAfter* after) noexcept {
  EngineStats::HeapScope heap(&stats_);
  ReuseAfter unasked;
  stamps_.Take(address, address + units * kBlockUnit, after != nullptr ? after : &unasked);
}

// Needs the lock.
void Engine::Impl::PutStamps(DeviceAddress address, uint64_t units, const ReuseAfter& after) noexcept {
  EngineStats::HeapScope heap(&stats_);
  stamps_.Put(address, address + units * kBlockUnit, after);
}

void Engine::Impl::SettleReuse(uint64_t tick) {
  if (abandoned()) return;
  EngineLock lock(mutex_);
  stamps_.Settle(tick);
}

void Engine::Impl::StampReleasesSoFar(uint64_t tick) {
  if (abandoned()) return;
  EngineLock lock(mutex_);
  stamps_.PutEverywhere(tick);
}

// Needs the lock, and gives it up. The block is released: only its stamps and the figures are left.
inline EngineStatus Engine::Impl::EndRelease(DeviceAddress address, uint64_t units, const ReuseAfter* after) noexcept {
  blocks_.RemoveLive(units);
  if (after != nullptr) [[unlikely]]
    PutStamps(address, units, *after);
  mutex_.unlock();
  return EngineStatus::kOk;
}

inline EngineStatus Engine::Impl::Release(DeviceAddress address, uint32_t stream, const ReuseAfter* after) {
  if (!owned_.Has(address)) [[unlikely]]
    return ReleaseOutsideArena(address, stream, after);
  if (abandoned()) [[unlikely]]
    return EngineStatus::kOk;
  mutex_.lock();
  uint64_t units = 0;
  bool released = fast_.releases() && address % kBlockUnit == 0 &&
                  scripts_.follower().TryRelease(pages_.OffsetOf(address), &history_, &units);
  if (!released) [[unlikely]]
    return ReleaseNext(address, stream, after);
  return EndRelease(address, units, after);
}

bool Engine::Impl::OwnsOutsideArena(DeviceAddress address) const {
  return owned_.HasGuarded(address) || spill_.Owns(address);
}

EngineStatus Engine::Impl::ReleaseOutsideArena(DeviceAddress address, uint32_t stream, const ReuseAfter* after) {
  if (!OwnsOutsideArena(address)) return EngineStatus::kNotOurs;
  if (abandoned()) return EngineStatus::kOk;
  if (guards_) return ReleaseGuarded(address, stream, after);
  mutex_.lock();
  return ReleaseSlow(address, stream, after);
}

// Needs the lock. No script has the block. Those at an envelope's places are released here.
EngineStatus Engine::Impl::ReleaseNext(DeviceAddress address, uint32_t stream, const ReuseAfter* after) noexcept {
  uint32_t units = 0;
  if (!fast_.envelope_releases() || !envelope_.TryRelease(address, &history_, &units)) [[unlikely]] {
    return ReleaseSlow(address, stream, after);
  }
  return EndRelease(address, units, after);
}

// Needs the lock.
EngineStatus Engine::Impl::ReleaseSlow(DeviceAddress address, uint32_t stream, const ReuseAfter* after) noexcept try {
  EngineLock lock(mutex_, std::adopt_lock);
  if (abandoned()) return EngineStatus::kOk;
  Follower& follower = scripts_.follower();
  const bool by_script = follower.active() && address % kBlockUnit == 0 && pages_.InReservation(address);
  const uint32_t entry = by_script ? follower.LiveAt(pages_.OffsetOf(address)) : kNone;
  if (entry == kNone) return ReleaseDynamic(address, stream, after);
  const uint64_t ordinal = follower.Ordinal(entry);
  const uint32_t age = history_.Released(ordinal), units = follower.Units(entry);
  scripts_.RecordLifetime(age);
  follower.NoteAge(entry, age);
  blocks_.RemoveLive(units);
  if (after != nullptr) PutStamps(address, units, *after);
  Record(EventKind::kRelease, ordinal, units * kBlockUnit, stream, address);
  follower.Release(entry);
  return EngineStatus::kOk;
} catch (...) {
  GiveUp();
  return EngineStatus::kOk;
}

EngineStatus Engine::Impl::ReleaseDynamic(DeviceAddress address, uint32_t stream, const ReuseAfter* after) {
  EngineStats::HeapScope heap(&stats_);
  DynamicBlock block;
  if (!blocks_.Remove(address, &block)) return EngineStatus::kInvalidValue;
  blocks_.RemoveLive(block.units);
  if (after != nullptr) stamps_.Put(address, address + block.units * kBlockUnit, *after);
  if (block.ordinal != kUnmonitored) {
    const uint32_t age = history_.Released(block.ordinal);
    scripts_.RecordLifetime(age);
    envelope_.NoteRelease(age, block.envelope_entry, address);
    if (block.entry != kNone && scripts_.follower().active() && block.follow_epoch == scripts_.epoch()) {
      scripts_.follower().NoteAge(block.entry, age);
    }
  }
  if (pages_.InReservation(address)) {
    pages_.Free(address, block.bytes, block.foreign);
  } else {
    spill_.Free(address, block.bytes);
  }
  Record(EventKind::kRelease, block.trace_id, block.units * kBlockUnit, stream, address);
  return EngineStatus::kOk;
}

void Engine::Impl::Mark() {
  if (abandoned()) return;
  EngineLock lock(mutex_);
  Record(EventKind::kMark, 0, 0, 0);
  scheduler_.Mark();
  if (!envelope_.active()) return;
  if (envelope_.ServesWell() && !stats_.steady()) {
    stats_.BeginSteady(pages_.arena().driver_calls());
    pages_.BeginSteady();
  }
  pages_.EndEnvelopeIteration(lock);
  FlushStats();  // requests of the short way do not
}

void Engine::Impl::ExpectMarks() {
  if (abandoned()) return;
  EngineLock lock(mutex_);
  Record(EventKind::kExpect, 0, 0, 0);
  scheduler_.ExpectMarks();
}

uint64_t Engine::Impl::Trim(uint64_t wanted) {
  if (abandoned() || memory_->Fixed() || wanted == 0) return 0;
  EngineLock lock(mutex_);
  return pages_.base() != 0 ? pages_.GiveBack(lock, wanted) : 0;
}

bool Engine::Impl::BeginComparison(uint64_t* median_ns) {
  if (abandoned() || !comparison_.Claim()) return false;
  EngineLock lock(mutex_);
  *median_ns = comparison_.MedianTime();
  return *median_ns != 0 && stats_.plans() == 0;
}

void Engine::Impl::Interrupt() {
  if (abandoned()) return;
  EngineLock lock(mutex_);
  ++interrupts_;
  Record(EventKind::kInterrupt, 0, 0, 0);
  UpdateState();
}

void Engine::Impl::Resume() {
  if (abandoned()) return;
  EngineLock lock(mutex_);
  if (interrupts_ > 0 && --interrupts_ == 0) pages_.EndWait();
  Record(EventKind::kResume, 0, 0, 0);
  UpdateState();
}

void Engine::Impl::NotePassedThrough() {
  if (abandoned()) return;
  EngineLock lock(mutex_);
  stats_.NotePassedThrough();
}

void Engine::Impl::Record(EventKind kind, uint64_t id, uint64_t bytes, uint32_t stream, DeviceAddress address) {
  if (!recording_.on()) [[likely]]
    return;
  recording_.Add(kind, id, bytes, stream & ~kStreamOrdered, (stream & kStreamOrdered) != 0, address);
}

// A signal handler that interrupted a request may have called exit(). Then this thread holds the lock for ever. In that
// case the last figures are lost rather than the process.
void Engine::Impl::Finish() {
  if (abandoned()) return;
  constexpr int64_t kPackAtTheEnd = 50'000'000;  // ns
  constexpr int kTries = 200;
  EngineLock lock(mutex_, std::defer_lock);
  for (int i = 0; i < kTries && !lock.try_lock(); ++i) usleep(1000);
  if (!lock.owns_lock()) return;
  lock.unlock();
  Save(kPackAtTheEnd);
  lock.lock();
  FlushStats();
  if (!recording_.on()) return;
  recording_.Close();
  UpdateState();
}

void Engine::Impl::Retire() {
  {
    const auto none = pages_.WaitForChanges();  // current changes of pages end first; later ones do nothing
    GiveUp(/*context_ends=*/true);
  }
  scheduler_.Detach();
  immortal_ = true;
}

// The engine reports errors by status, never by exception: its callers are C functions of the program. A bad_alloc can
// come from the middle of any change, so the state is not trusted any more. Every later request takes the slow path,
// and finds there that the engine is abandoned.
void Engine::Impl::GiveUp(bool context_ends) {
  EngineLock lock(mutex_);
  if (abandoned()) return;
  if (!context_ends) state_ = EngineState::kDisabled;  // for the figures
  FlushStats();
  if (context_ends && options_.current != nullptr) options_.current->held = options_.current->live = 0;
  recording_.Close();
  abandoned_ = true;
  attention_ = true;
  state_ = EngineState::kDisabled;
  fast_.Close();
}

// Takes no lock: the thread that held it may not exist in this process.
void Engine::Impl::AbandonAfterFork() {
  immortal_ = true;
  abandoned_ = true;
  attention_ = true;
  recording_.Abandon();
  scheduler_.Abandon();
}

Engine::Engine(DeviceMemory* memory, const EngineOptions& options)
    : impl_(std::make_unique<Impl>(memory, options, &service_, &steady_)) {}
Engine::~Engine() {
  if (impl_->immortal()) (void)impl_.release();  // a thread, or locks of another process, still use it
}

// Of the functions below, those that can throw do so only in rare parts, which catch the exception.
EngineStatus Engine::Allocate(uint64_t bytes, uint32_t stream, DeviceAddress* address, ReuseAfter* after) {
  return impl_->Allocate(bytes, stream, address, after);
}
EngineStatus Engine::Release(DeviceAddress address, uint32_t stream, const ReuseAfter* after) {
  return impl_->Release(address, stream, after);
}
void Engine::SettleReuse(uint64_t tick) { impl_->SettleReuse(tick); }
void Engine::StampReleasesSoFar(uint64_t tick) { impl_->StampReleasesSoFar(tick); }
void Engine::AddTo(uint64_t hotpack_stats::*figure, uint64_t count) { impl_->AddTo(figure, count); }
bool Engine::Owns(DeviceAddress address) const { return impl_->Owns(address); }
void Engine::ListPieces(DeviceAddress address, uint64_t bytes, std::vector<MappedExtent>* pieces) try {
  impl_->ListPieces(address, bytes, pieces);
} catch (...) {
  pieces->clear();
  impl_->GiveUp();
}

bool Engine::FindBlock(DeviceAddress address, DeviceAddress* base, uint64_t* bytes, uint64_t* id) try {
  return impl_->FindBlock(address, base, bytes, id);
} catch (...) {
  return false;  // it only reads
}
bool Engine::Reservation(DeviceAddress* base, uint64_t* bytes) const { return impl_->Reservation(base, bytes); }
EngineUsage Engine::Usage() try { return impl_->Usage(); } catch (...) {
  return {};  // the host has no memory to look for empty chunks
}
void Engine::List(std::vector<Extent>* blocks, std::vector<Extent>* mapped) try {
  impl_->List(blocks, mapped);
} catch (...) {
  blocks->clear();  // the host has no memory for the lists
  mapped->clear();
}
void Engine::ResetPeak() { impl_->ResetPeak(); }
uint64_t Engine::Trim(uint64_t wanted) try { return impl_->Trim(wanted); } catch (...) {
  impl_->GiveUp();
  return 0;
}
void Engine::Mark() try {
  impl_->Mark();
  impl_->WaitLogical();
} catch (...) {
  impl_->GiveUp();
}
void Engine::ExpectMarks() { impl_->ExpectMarks(); }
void Engine::Interrupt() { impl_->Interrupt(); }
void Engine::Resume() { impl_->Resume(); }
bool Engine::WaitPlan(int timeout_ms) { return impl_->WaitPlan(timeout_ms); }
uint64_t Engine::CheckGuards() { return impl_->CheckGuards(); }
bool Engine::BeginComparison(uint64_t* median_ns) { return impl_->BeginComparison(median_ns); }
void Engine::LeaveToDriver() { impl_->LeaveToDriver(); }
void Engine::NotePassedThrough() { impl_->NotePassedThrough(); }
hotpack_stats Engine::Stats() { return impl_->Stats(); }
std::shared_ptr<const SavedPlan> Engine::PlanToSave() { return impl_->PlanToSave(impl_->plan_time_limit_ns()); }
void Engine::Finish() try { impl_->Finish(); } catch (...) {  // no host memory for a plan to save
}
void Engine::Retire() { impl_->Retire(); }
void Engine::AbandonAfterFork() { impl_->AbandonAfterFork(); }

}  // namespace hotpack
