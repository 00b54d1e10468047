#include "preload/streams/stream_order.h"

#include <sched.h>

#include <algorithm>
#include <new>

#include "preload/process/driver_access.h"
#include "preload/process/hook_scope.h"
#include "preload/process/options.h"
#include "preload/streams/green_contexts.h"
#include "preload/streams/order_cost.h"

namespace hotpack {

constinit StreamOrder process_order;

// --- streams ---------------------------------------------------------------------------------------------------------

// Gives the stream a number and orders it after all earlier work. Returns kAllStreams if there is no number. A
// per-thread stream then counts as any stream; for other streams the host waits from now on.
uint32_t StreamOrder::AddStream(CUstream stream, CUcontext context, StreamKind kind) {
  if (state_.load() == kSynchronous) return kAllStreams;
  bool fresh = false;
  uint32_t number = streams_.Add(stream, context, kind, &fresh);
  if (number == kAllStreams && kind != StreamKind::kPerThread) {
    if (Barrier()) streams_.Recycle(settled_.load());
    number = streams_.Add(stream, context, kind, &fresh);
    if (number == kAllStreams) BecomeSynchronous();
  }
  if (number == kAllStreams || !fresh) return number;
  int expected = kOne;
  UsedStreams::Stream others[UsedStreams::kCapacity];
  const bool alone = kind == StreamKind::kLegacy && streams_.List(others) == 1;
  if (!alone) {
    NotSimple();
    state_.compare_exchange_strong(expected, kSeveral);
    if (!ByContexts() && !ComeAfterFloor(number) && !SynchronizeContexts()) WaitOnHost();
  }
  streams_.Joined(number);
  return number;
}

// Called when numbers run out. From then on every release waits. Waits now for the earlier releases.
void StreamOrder::BecomeSynchronous() {
  NotSimple();
  state_.store(kSynchronous);
  const uint64_t tick = tick_.load();
  if (SynchronizeContexts()) Settle(tick);
}

uint32_t StreamOrder::NumberOf(CUstream stream, CUcontext context) {
  const CudaDriver* driver = Driver();
  if (stream == kNoStream || driver == nullptr) return kAllStreams;
  // A default stream without a context.
  if (reinterpret_cast<uintptr_t>(stream) <= 2 && context == nullptr) return kAllStreams;
  if (stream == nullptr || stream == CU_STREAM_LEGACY) {
    const uint32_t number = streams_.FindLegacy(context);
    return number != kAllStreams ? number : AddStream(CU_STREAM_LEGACY, context, StreamKind::kLegacy);
  }
  if (stream == CU_STREAM_PER_THREAD) {
    const uint32_t number = streams_.FindOwn(context);
    return number != kAllStreams ? number : AddStream(stream, context, StreamKind::kPerThread);
  }
  const uint32_t number = streams_.Find(stream);
  if (number != kAllStreams) return number;
  unsigned int flags = 0;
  if (driver->StreamGetFlags == nullptr || driver->StreamGetFlags(stream, &flags) != CUDA_SUCCESS)
    flags = CU_STREAM_NON_BLOCKING;
  CUcontext own = nullptr;
  if (driver->StreamGetCtx != nullptr && driver->StreamGetCtx(stream, &own) == CUDA_SUCCESS) context = own;
  if (context == nullptr) return kAllStreams;
  return AddStream(stream, context,
                   (flags & CU_STREAM_NON_BLOCKING) != 0 ? StreamKind::kNonBlocking : StreamKind::kBlocking);
}

void StreamOrder::FirstUse(CUstream stream) {
  // A captured use does not count: the graph's launch will.
  if (state_.load() == kSynchronous || IsCapturing(stream)) return;
  const CudaDriver* driver = Driver();
  CUcontext context = nullptr;
  if (driver == nullptr) return;
  if (driver->StreamGetCtx == nullptr || driver->StreamGetCtx(stream, &context) != CUDA_SUCCESS) {
    context = CurrentContext(*driver);
  }
  if (context == nullptr) return;  // the call itself will fail
  // An event of a primary context covers its green ones too (cuda.h, cuCtxRecordEvent).
  NoteContext(ByContexts() ? Greens().OwnerOf(context) : context);
  NumberOf(stream, context);
}

// The stream's work may use blocks that cuMemFree releases later, so it counts as a release.
void StreamOrder::DestroyStream(CUstream stream) {
  const uint32_t number = streams_.Find(stream);
  if (number == kAllStreams) return;
  const uint64_t tick = tick_.fetch_add(1) + 1;
  streams_.NoteRelease(number, tick);
  if (!IsCapturing(stream) && streams_.Record(*Driver(), number, tick) == nullptr) SynchronizeStream(stream);
  streams_.Remove(stream);
}

void StreamOrder::NoteContext(CUcontext context) {
  if (!Seen()) NotSimple();
  // First, because threads that find the context in the list rely on its events.
  const bool room = !ByContexts() || context_events_.Add(context);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (contexts_ == nullptr) contexts_ = new std::vector<CUcontext>;
    if (std::find(contexts_->begin(), contexts_->end(), context) != contexts_->end()) return;
    contexts_->push_back(context);
  }
  if (!room) BecomeSynchronous();  // more contexts than slots
  int expected = kOne;
  if (GetOptions().free_sync_always) {
    NotSimple();
    state_.compare_exchange_strong(expected, kSeveral);
  }
  if (Seen()) AddStream(CU_STREAM_LEGACY, context, StreamKind::kLegacy);
}

void StreamOrder::KeepStreams() {
  promised_.store(true);
  std::lock_guard<std::mutex> lock(mutex_);
  if (contexts_ == nullptr || contexts_->empty()) kept_.store(true);  // otherwise a request was served without a number
}

// --- releases --------------------------------------------------------------------------------------------------------

EngineStatus StreamOrder::Release(ContextArena* arena, DeviceAddress address, CUstream stream, ReleaseKind kind) {
  Engine* engine = arena->engine;
  const bool pooled = kind == ReleaseKind::kPooled;
  const bool host = !Seen() || state_.load() == kSynchronous;
  if (host || (stream == kNoStream && GetOptions().free_sync_always)) {
    // Without hooks captures are not seen, so the driver is asked about the stream.
    const bool capturing = !Seen() && IsCapturing(stream);
    ReuseAfter uses;
    if (!capturing && use_count_.load(std::memory_order_acquire) != 0) TakeUses(address, &uses);
    const bool all = stream == kNoStream || pooled || !uses.empty();
    if (!capturing && (all ? SynchronizeContexts() : SynchronizeStream(stream))) {
      return engine->Release(address, StreamTag(stream));
    }
    return ReleaseLater(arena, address, stream);
  }
  // A pooled release needs no event while a capture is active, unless the block has recorded users.
  if (AnyCapture() && (!pooled || HasUses(address))) return ReleaseLater(arena, address, stream);
  const ReuseAfter after = StampOf(engine, stream, address, kind);
  const EngineStatus status = engine->Release(address, StreamTag(stream), &after);
  if (pooled) RecordAtRelease(engine, address);
  return status;
}

// Returns the point after all uses of the block at `address`, which is being released.
ReuseAfter StreamOrder::StampOf(Engine* engine, CUstream stream, DeviceAddress address, ReleaseKind kind) {
  uint32_t number = kAllStreams;
  if (stream != kNoStream) {
    const CudaDriver* driver = Driver();
    number = NumberOf(stream, driver != nullptr ? CurrentContext(*driver) : nullptr);
  }
  ReuseAfter after;
  if (number == kAllStreams) {
    ReuseAfter covered;  // already covered by all streams
    if (use_count_.load(std::memory_order_acquire) != 0) TakeUses(address, &covered);
    after.Add(kAllStreams, tick_.fetch_add(1) + 1);
    return after;
  }
  const uint64_t tick = tick_.fetch_add(1) + 1;
  streams_.NoteRelease(number, tick);
  const bool pooled = kind == ReleaseKind::kPooled;
  after.Add(number, tick, pooled ? PooledBlock(address) : 0);
  if (!pooled && (streams_.TakeWanted(number) || host_waits_.load(std::memory_order_relaxed) || AskedOffPlan(engine))) {
    const OrderCostScope cost(engine, 0);
    if (EnterSynchronize()) {
      streams_.Record(*Driver(), number, tick_.load());
      LeaveSynchronize();
    }
  }
  if (use_count_.load(std::memory_order_acquire) != 0) TakeUses(address, &after);
  return after;
}

void StreamOrder::RecordUse(DeviceAddress address, CUcontext context, CUstream stream) {
  NotSimple();
  const std::vector<uint32_t> users = Seen() ? UsersOf(context, stream) : std::vector<uint32_t>{kAllStreams};
  std::lock_guard<std::mutex> lock(mutex_);
  if (uses_ == nullptr) uses_ = new std::unordered_map<DeviceAddress, std::vector<uint32_t>>;
  std::vector<uint32_t>& streams = (*uses_)[address];
  for (const uint32_t number : users) {
    if (std::find(streams.begin(), streams.end(), number) == streams.end()) streams.push_back(number);
  }
  use_count_.store(uses_->size(), std::memory_order_release);
}

bool StreamOrder::HasUses(DeviceAddress address) {
  if (use_count_.load(std::memory_order_acquire) == 0) return false;
  std::lock_guard<std::mutex> lock(mutex_);
  return uses_ != nullptr && uses_->count(address) != 0;
}

void StreamOrder::TakeUses(DeviceAddress address, ReuseAfter* after) {
  std::vector<uint32_t> streams;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (uses_ == nullptr) return;
    const auto found = uses_->find(address);
    if (found == uses_->end()) return;
    streams.swap(found->second);
    uses_->erase(found);
    use_count_.store(uses_->size(), std::memory_order_release);
  }
  for (const uint32_t stream : streams) {
    const uint64_t tick = tick_.fetch_add(1) + 1;
    // A gone stream left no event that is late enough. Such a use counts as any stream, which waits for the barrier.
    // The event is recorded now: one recorded when it is needed would stand for all work until then. Where streams may
    // end unannounced, the program also answers for the stream's handle only now.
    const bool gone = stream == kAllStreams || streams_.Get(stream).gone || (!RecordNow(stream) && ByContexts());
    if (!gone) streams_.NoteRelease(stream, tick);
    after->Add(gone ? kAllStreams : stream, tick);
  }
}

// --- requests --------------------------------------------------------------------------------------------------------

bool StreamOrder::OrderAfter(ContextArena* arena, CUstream stream, const ReuseAfter& after) {
  const uint64_t tick = tick_.load();
  // A default stream is the current context's. That is the arena's, or a green one of it.
  CUcontext context = arena->context;
  if (Greens().Any() && reinterpret_cast<uintptr_t>(stream) <= 2 && Driver() != nullptr) [[unlikely]]
    context = CurrentContext(*Driver());
  const uint32_t number = stream == kNoStream ? kAllStreams : NumberOf(stream, context);
  if (AsksNothing(number, after)) return true;
  const OrderCostScope cost(arena->engine);
  if (ByContexts()) return OrderByContexts(stream, number, after) || OrderOnHost(after, tick);
  return (number == kAllStreams ? Barrier() : OrderStream(number, after)) || OrderOnHost(after, tick);
}

bool StreamOrder::OrderOnHost(const ReuseAfter& after, uint64_t tick) {
  if (SynchronizeContexts()) {
    Settle(tick);
    return true;
  }
  if (ByContexts()) return WaitOnHostForContexts(after.LatestTick());
  return after.LatestTick() <= CaptureTick() && WaitOnHost();
}

// Returns true if all releases are the stream's own.
bool StreamOrder::AsksNothing(uint32_t stream, const ReuseAfter& after) const {
  const uint64_t settled = settled_.load(std::memory_order_acquire);
  if (after.all_tick > settled || stream == kAllStreams) return false;
  for (uint32_t i = 0; i < after.count; ++i) {
    if (after.points[i].stream != stream && after.points[i].tick > settled) return false;
  }
  return true;
}

bool StreamOrder::OrderStream(uint32_t stream, const ReuseAfter& after) {
  const uint64_t settled = settled_.load(std::memory_order_acquire);
  uint64_t needed = after.all_tick;
  for (uint32_t i = 0; i < after.count; ++i) {
    const ReuseAfter::Point& point = after.points[i];
    if (point.stream == stream || point.tick <= settled) continue;
    if (point.pooled_block != 0) {
      needed = std::max(needed, point.tick);
      if (!streams_.KnowsAll(stream, point.tick)) crossing_.Note(point.pooled_block);
    } else if (!streams_.Knows(stream, point.stream, point.tick) && !Edge(point.stream, point.tick, stream)) {
      return false;
    }
  }
  return needed <= settled || streams_.KnowsAll(stream, needed) || Join(stream, needed);
}

void StreamOrder::ForgetContext(CUcontext context, const ContextArena* arena) {
  {
    // Its legacy stream's number may go to another stream. Other contexts' work before the floor may go on.
    const uint32_t legacy = streams_.FindLegacy(context);
    std::lock_guard<std::mutex> lock(mutex_);
    if (legacy != kAllStreams && floor_.stream == legacy) floor_.stream = kAllStreams;
  }
  streams_.ForgetContext(context);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (contexts_ != nullptr) std::erase(*contexts_, context);
  }
  while (syncing_.load() > 0) sched_yield();  // another thread may be copying the list
  std::lock_guard<std::mutex> lock(mutex_);
  if (began_ != nullptr) {
    const size_t erased = std::erase_if(*began_, [context](const Capture& c) { return c.context == context; });
    captures_.fetch_sub(static_cast<int>(erased));
  }
  if (arena == nullptr) return;
  if (uses_ != nullptr) {
    std::erase_if(*uses_, [arena](const auto& use) { return arena->engine->Owns(use.first); });
    use_count_.store(uses_->size());
  }
  size_t forgotten = 0;
  for (size_t i = fixed_count_; i-- > 0;) {
    if (fixed_[i].arena != arena) continue;
    fixed_[i] = fixed_[--fixed_count_];
    ++forgotten;
  }
  if (overflow_ != nullptr) {
    forgotten += std::erase_if(*overflow_, [arena](const Waiting& waiting) { return waiting.arena == arena; });
  }
  waiting_count_.fetch_sub(forgotten, std::memory_order_relaxed);
}

void StreamOrder::ResetAfterFork() {
  new (&mutex_) std::mutex;  // another thread of the parent may have held it
  streams_.ResetAfterFork();
  context_events_.ResetAfterFork();
  simple_.store(Seen());
  leaving_.store(false);
  left_.store(false);
  past_tick_.store(0);
  floor_ = {};
  barriers_.store(0);
  several_ask_.store(false);
  found_devices_.store(0);
  state_.store(kOne);
  captures_.store(0);
  beginning_.store(false);
  syncing_.store(0);
  waiting_count_.store(0);
  use_count_.store(0);
  fixed_count_ = 0;
  overflow_ = nullptr;
  began_ = nullptr;
  contexts_ = nullptr;
  uses_ = nullptr;
}

// --- recordings ------------------------------------------------------------------------------------------------------

uint32_t StreamOrdinal(CUstream stream) {
  if (stream == nullptr || stream == CU_STREAM_LEGACY || stream == kNoStream) return 0;
  struct Entry {
    std::atomic<uint64_t> key{0};
    std::atomic<uint32_t> ordinal{0};
  };
  constexpr uint32_t kEntries = 1024;
  static constinit Entry entries[kEntries];
  static constinit std::atomic<uint32_t> next{1};
  const uint64_t key = StreamKey(stream);
  const uint32_t start = static_cast<uint32_t>((key * 0x9e3779b97f4a7c15ull) >> 54);
  for (uint32_t i = 0; i < kEntries; ++i) {
    Entry& entry = entries[(start + i) % kEntries];
    uint64_t found = entry.key.load(std::memory_order_acquire);
    if (found == 0 && entry.key.compare_exchange_strong(found, key)) {
      entry.ordinal.store(next.fetch_add(1), std::memory_order_release);
      return entry.ordinal.load();
    }
    if (found != key) continue;
    uint32_t ordinal = 0;
    while ((ordinal = entry.ordinal.load(std::memory_order_acquire)) == 0) sched_yield();
    return ordinal;
  }
  return kEntries;  // more streams than any real program has: they share an ordinal
}

}  // namespace hotpack
