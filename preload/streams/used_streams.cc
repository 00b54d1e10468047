#include "preload/streams/used_streams.h"

#include <sched.h>

#include <algorithm>
#include <new>

#include "preload/process/current_scope.h"

extern "C" {
__attribute__((visibility("hidden"))) uint64_t hotpack_stream_handles[1u << kHotpackHandleBits] = {};
}

namespace hotpack {
namespace {

// As in work_hooks.cc.
uint32_t HandleHash(CUstream handle) {
  return (static_cast<uint32_t>(reinterpret_cast<uint64_t>(handle)) * 0x9E3779B1u) >> (32 - kHotpackHandleBits);
}

// Numbers of threads are never reused. The address of a thread's storage would be.
uint64_t ThreadNumber() {
  static constinit std::atomic<uint64_t> next{1};
  static __attribute__((tls_model("initial-exec"))) thread_local uint64_t number = 0;
  if (number == 0) number = next.fetch_add(1, std::memory_order_relaxed);
  return number;
}

struct OwnStream {
  CUcontext context;
  uint64_t generation;
  uint32_t number;
};
__attribute__((tls_model("initial-exec"))) thread_local OwnStream own_stream = {nullptr, 0, kAllStreams};

}  // namespace

uint32_t UsedStreams::Find(CUstream handle) const {
  const uint32_t i = HandleHash(handle);
  if (__atomic_load_n(&hotpack_stream_handles[i], __ATOMIC_ACQUIRE) == reinterpret_cast<uint64_t>(handle)) {
    return numbers_[i].load(std::memory_order_acquire);
  }
  std::lock_guard<std::mutex> lock(mutex_);
  const uint32_t number = FindSlot(handle, nullptr, StreamKind::kBlocking);
  return number != kAllStreams && slots_[number].state == State::kUsed ? number : kAllStreams;
}

uint32_t UsedStreams::FindLegacy(CUcontext context) const {
  if (first_context_.load(std::memory_order_acquire) == context) {
    const uint32_t number = first_legacy_.load(std::memory_order_acquire);
    if (number != 0) return number - 1;
  }
  std::lock_guard<std::mutex> lock(mutex_);
  return FindSlot(CU_STREAM_LEGACY, context, StreamKind::kLegacy);
}

uint32_t UsedStreams::FindOwn(CUcontext context) const {
  const OwnStream own = own_stream;
  if (own.number == kAllStreams || own.context != context) return kAllStreams;
  return slots_[own.number].generation.load(std::memory_order_acquire) == own.generation ? own.number : kAllStreams;
}

// The lock is held. Only default streams are distinguished by context.
uint32_t UsedStreams::FindSlot(CUstream handle, CUcontext context, StreamKind kind) const {
  const bool named = kind == StreamKind::kBlocking || kind == StreamKind::kNonBlocking;
  for (uint32_t i = 0; i < count_; ++i) {
    const Slot& slot = slots_[i];
    if (slot.state == State::kFree || slot.state == State::kGone || slot.handle != handle) continue;
    if (named || (slot.context == context && (kind == StreamKind::kLegacy || slot.thread == ThreadNumber()))) return i;
  }
  return kAllStreams;
}

uint32_t UsedStreams::Add(CUstream handle, CUcontext context, StreamKind kind, bool* fresh) {
  *fresh = false;
  std::unique_lock<std::mutex> lock(mutex_);
  uint32_t number = FindSlot(handle, context, kind);
  while (number != kAllStreams && slots_[number].state == State::kJoining) {
    lock.unlock();
    sched_yield();
    lock.lock();
    number = FindSlot(handle, context, kind);
  }
  if (number == kAllStreams) {
    if (kind == StreamKind::kPerThread && per_thread_ == kPerThreadCapacity) return number;
    for (uint32_t i = 0; i < kCapacity && number == kAllStreams; ++i) {
      if (slots_[i].state == State::kFree) number = i;
    }
    if (number == kAllStreams) return number;
    Slot& slot = slots_[number];
    for (uint32_t i = 0; i < kCapacity; ++i) {
      known_[number][i].store(0, std::memory_order_relaxed);
      known_[i][number].store(0, std::memory_order_relaxed);
    }
    if (slot.context != context)
      std::fill(slot.ring.events, slot.ring.events + EventRing::kEvents, nullptr);  // the driver still owns those
    if (kind == StreamKind::kPerThread) ++per_thread_;
    slot.state = State::kJoining;
    slot.kind = kind;
    slot.handle = handle;
    slot.context = context;
    slot.thread = ThreadNumber();
    slot.finished = false;
    slot.may_end = false;
    slot.id = 0;
    slot.last_release.store(0);
    slot.wanted.store(0);
    slot.known_all.store(0);
    slot.generation.fetch_add(1);
    slot.ring.Clear();
    count_ = std::max(count_, number + 1);
    *fresh = true;
  }
  if (kind == StreamKind::kPerThread) own_stream = {context, slots_[number].generation.load(), number};
  return number;
}

void UsedStreams::Joined(uint32_t number) {
  std::lock_guard<std::mutex> lock(mutex_);
  Slot& slot = slots_[number];
  if (slot.state != State::kJoining) return;  // removed meanwhile
  slot.state = State::kUsed;
  if (slot.kind == StreamKind::kBlocking || slot.kind == StreamKind::kNonBlocking) Publish(slot, number);
  if (slot.kind == StreamKind::kLegacy && first_legacy_.load() == 0) {
    first_legacy_.store(number + 1, std::memory_order_release);
    first_context_.store(slot.context, std::memory_order_release);
  }
}

// The lock is held. Of two handles with one hash, the second is searched each time.
void UsedStreams::Publish(const Slot& slot, uint32_t number) {
  const uint32_t i = HandleHash(slot.handle);
  if (__atomic_load_n(&hotpack_stream_handles[i], __ATOMIC_RELAXED) != 0) return;
  numbers_[i].store(number, std::memory_order_release);
  __atomic_store_n(&hotpack_stream_handles[i], reinterpret_cast<uint64_t>(slot.handle), __ATOMIC_RELEASE);
}

void UsedStreams::Unpublish(CUstream handle) {
  const uint32_t i = HandleHash(handle);
  if (__atomic_load_n(&hotpack_stream_handles[i], __ATOMIC_RELAXED) != reinterpret_cast<uint64_t>(handle)) return;
  __atomic_store_n(&hotpack_stream_handles[i], 0, __ATOMIC_RELEASE);
}

void UsedStreams::Remove(CUstream handle) {
  std::unique_lock<std::mutex> lock(mutex_);
  const uint32_t number = FindSlot(handle, nullptr, StreamKind::kBlocking);
  if (number == kAllStreams) return;
  Unpublish(handle);
  slots_[number].state = State::kGone;
  while (slots_[number].users > 0) {
    lock.unlock();
    sched_yield();
    lock.lock();
  }
}

void UsedStreams::ForgetContext(CUcontext context) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (first_context_.load() == context) {
    first_context_.store(nullptr);
    first_legacy_.store(0);
  }
  for (uint32_t i = 0; i < count_; ++i) {
    Slot& slot = slots_[i];
    if (slot.context != context || slot.state == State::kFree) continue;
    if (slot.state != State::kGone) Unpublish(slot.handle);
    slot.state = State::kGone;
    while (slot.users > 0) {
      lock.unlock();
      sched_yield();
      lock.lock();
    }
    slot.finished = true;
    slot.context = nullptr;
    slot.generation.fetch_add(1);
    if (slot.kind == StreamKind::kPerThread) --per_thread_;
    slot.ring = {};  // its events ended with the context
  }
}

void UsedStreams::Recycle(uint64_t tick) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (uint32_t i = 0; i < count_; ++i) {
    Slot& slot = slots_[i];
    if (slot.state == State::kGone && slot.last_release.load() <= tick) slot.state = State::kFree;
  }
}

size_t UsedStreams::List(Stream* streams) const {
  std::lock_guard<std::mutex> lock(mutex_);
  size_t listed = 0;
  for (uint32_t i = 0; i < count_; ++i) {
    const Slot& slot = slots_[i];
    if (slot.state == State::kFree) continue;
    streams[listed++] = {i,           slot.handle, slot.context, slot.kind, slot.state == State::kGone, slot.finished,
                         slot.may_end};
  }
  return listed;
}

UsedStreams::Stream UsedStreams::Get(uint32_t number) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const Slot& slot = slots_[number];
  return {number, slot.handle, slot.context, slot.kind, slot.state == State::kGone, slot.finished, slot.may_end};
}

// A call in progress with a stream's handle, or with its events, which it may outlive. False: gone.
class UsedStreams::Use {
 public:
  enum What { kHandle, kEvent };
  Use(UsedStreams* streams, uint32_t number, What what) : streams_(streams), slot_(streams->slots_[number]) {
    std::lock_guard<std::mutex> lock(streams_->mutex_);
    ok_ = slot_.state == State::kUsed || slot_.state == State::kJoining ||
          (what == kEvent && slot_.state == State::kGone && !slot_.finished);
    if (!ok_) return;
    ++slot_.users;
    handle = slot_.handle;
    context = slot_.context;
  }
  ~Use() {
    if (!ok_) return;
    std::lock_guard<std::mutex> lock(streams_->mutex_);
    --slot_.users;
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;
  explicit operator bool() const { return ok_; }

  CUstream handle = nullptr;
  CUcontext context = nullptr;

 private:
  UsedStreams* const streams_;
  Slot& slot_;
  bool ok_;
};

bool UsedStreams::Wait(const CudaDriver& driver, uint32_t number, uint32_t from, CUevent event) {
  const Use source(this, from, Use::kEvent);
  return source ? WaitFor(driver, number, event) : static_cast<bool>(Use(this, number, Use::kHandle));
}

bool UsedStreams::WaitFor(const CudaDriver& driver, uint32_t number, CUevent event) {
  const Use waiter(this, number, Use::kHandle);
  if (!waiter || driver.StreamWaitEvent == nullptr) return false;
  ++order_cost.waits;
  CurrentScope scope(driver, waiter.context);
  return scope && driver.StreamWaitEvent(waiter.handle, event, 0) == CUDA_SUCCESS;
}

void UsedStreams::SetMayEnd(uint32_t number) {
  std::lock_guard<std::mutex> lock(mutex_);
  slots_[number].may_end = true;
}

void UsedStreams::Identify(const CudaDriver& driver, uint32_t number) {
  const Use use(this, number, Use::kHandle);
  if (!use || reinterpret_cast<uintptr_t>(use.handle) <= 2) return;  // default streams live as long as their context
  Slot& slot = slots_[number];
  unsigned long long id = 0;
  {
    CurrentScope scope(driver, use.context);
    if (driver.StreamGetId == nullptr || driver.StreamGetId(use.handle, &id) != CUDA_SUCCESS) id = 0;
  }
  std::lock_guard<std::mutex> lock(mutex_);
  if (id != 0 && (slot.id == 0 || slot.id == id)) {
    slot.id = id;
    return;
  }
  slot.id = id;
  slots_[number].known_all.store(0);
  for (uint32_t i = 0; i < kCapacity; ++i) known_[number][i].store(0, std::memory_order_relaxed);
}

bool UsedStreams::AnyCapturing(const CudaDriver& driver) {
  if (driver.StreamIsCapturing == nullptr) return false;
  Stream streams[kCapacity];
  const size_t count = List(streams);
  for (size_t i = 0; i < count; ++i) {
    if (streams[i].gone || streams[i].may_end || streams[i].kind == StreamKind::kPerThread) continue;
    const Use use(this, streams[i].number, Use::kHandle);
    if (!use) continue;
    const CurrentScope scope(driver, use.context);
    if (!scope) continue;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    const CUresult result = driver.StreamIsCapturing(use.handle, &status);
    // For the legacy stream the driver refuses the query while a blocking stream of its context captures.
    if (result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT ||
        (result == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE)) {
      return true;
    }
  }
  return false;
}

bool UsedStreams::WaitOnHost(const CudaDriver& driver, uint32_t number) {
  const Use source(this, number, Use::kEvent);
  const CUevent event = source ? LatestEvent(number) : nullptr;
  if (event == nullptr) return true;
  CurrentScope scope(driver, source.context);
  return scope && driver.EventSynchronize != nullptr && driver.EventSynchronize(event) == CUDA_SUCCESS;
}

bool UsedStreams::Synchronize(const CudaDriver& driver, uint32_t number) {
  const Use use(this, number, Use::kHandle);
  if (!use) return true;
  CurrentScope scope(driver, use.context);
  return scope && driver.StreamSynchronize(use.handle) == CUDA_SUCCESS;
}

CUevent UsedStreams::Record(const CudaDriver& driver, uint32_t number, uint64_t tick) {
  const Use use(this, number, Use::kHandle);
  if (!use || driver.EventCreate == nullptr || driver.EventRecord == nullptr) return nullptr;
  EventRing& ring = slots_[number].ring;
  CUevent event = nullptr;
  uint32_t k = 0;
  uint64_t before = 0;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    k = ring.Begin(&before);
    if (k == EventRing::kEvents) return nullptr;
    event = ring.events[k];
  }
  CUresult result = CUDA_SUCCESS;
  bool finished = false;
  {
    CurrentScope scope(driver, use.context);
    if (!scope) result = CUDA_ERROR_INVALID_CONTEXT;
    if (result == CUDA_SUCCESS && event == nullptr) result = driver.EventCreate(&event, CU_EVENT_DISABLE_TIMING);
    finished = result == CUDA_SUCCESS && before != 0 && IsFinished(driver, event);
    if (result == CUDA_SUCCESS) result = driver.EventRecord(event, use.handle);
  }
  ++order_cost.events;
  std::lock_guard<std::mutex> lock(mutex_);
  ring.Commit(k, event, result == CUDA_SUCCESS ? tick : 0, finished ? before : 0);
  if (result != CUDA_SUCCESS) return nullptr;
  return event;
}

CUevent UsedStreams::EventAfter(uint32_t number, uint64_t tick, uint64_t* stands_for) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const EventRing& ring = slots_[number].ring;
  const uint32_t k = ring.After(tick);
  if (k == EventRing::kEvents) return nullptr;
  if (stands_for != nullptr) *stands_for = ring.ticks[k];
  return ring.events[k];
}

bool UsedStreams::Finished(uint32_t number, uint64_t tick) const {
  std::lock_guard<std::mutex> lock(mutex_);
  return tick <= slots_[number].ring.done;
}

// Threads may record at the same time and come back in any order. The event that was begun last covers all work that
// was submitted before it, so an ended stream's covers all of its work.
CUevent UsedStreams::LatestEvent(uint32_t number) const {
  std::unique_lock<std::mutex> lock(mutex_);
  const EventRing& ring = slots_[number].ring;
  while (true) {
    const uint32_t last = ring.Latest();
    if (last == EventRing::kEvents) return nullptr;
    if (ring.ticks[last] != EventRing::kBusy) return ring.events[last];
    lock.unlock();
    sched_yield();
    lock.lock();
  }
}

void UsedStreams::NoteRelease(uint32_t number, uint64_t tick) {
  std::atomic<uint64_t>& last = slots_[number].last_release;
  uint64_t seen = last.load(std::memory_order_relaxed);
  while (seen < tick && !last.compare_exchange_weak(seen, tick, std::memory_order_release)) {
  }
}

bool UsedStreams::TakeWanted(uint32_t number) {
  std::atomic<int>& wanted = slots_[number].wanted;
  const int left = wanted.load(std::memory_order_relaxed);
  if (left <= 0) return false;
  wanted.store(left - 1, std::memory_order_relaxed);
  return true;
}

namespace {

void Raise(std::atomic<uint64_t>* value, uint64_t to) {
  uint64_t seen = value->load(std::memory_order_relaxed);
  while (seen < to && !value->compare_exchange_weak(seen, to, std::memory_order_release)) {
  }
}

}  // namespace

bool UsedStreams::Knows(uint32_t stream, uint32_t other, uint64_t tick) const {
  return known_[stream][other].load(std::memory_order_acquire) >= tick || KnowsAll(stream, tick);
}
void UsedStreams::NoteKnown(uint32_t stream, uint32_t other, uint64_t tick) { Raise(&known_[stream][other], tick); }
bool UsedStreams::KnowsAll(uint32_t stream, uint64_t tick) const {
  return slots_[stream].known_all.load(std::memory_order_acquire) >= tick;
}
void UsedStreams::NoteKnownAll(uint32_t stream, uint64_t tick) { Raise(&slots_[stream].known_all, tick); }

void UsedStreams::ResetAfterFork() {
  new (&mutex_) std::mutex;  // another thread of the parent may have held it
  for (uint32_t i = 0; i < count_; ++i) {
    if (slots_[i].state != State::kFree) Unpublish(slots_[i].handle);
    slots_[i].state = State::kFree;
    slots_[i].generation.fetch_add(1);
    slots_[i].users = 0;
    slots_[i].ring = {};
  }
  count_ = per_thread_ = 0;
  first_context_.store(nullptr);
  first_legacy_.store(0);
}

}  // namespace hotpack
