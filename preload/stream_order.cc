#include "preload/stream_order.h"

#include <sched.h>

#include <algorithm>
#include <new>

#include "preload/driver_access.h"
#include "preload/hook_scope.h"

// Set by work_hooks.cc; constantly 0 without hooks (standalone.cc).
extern "C" int hotpack_per_thread_stream_used;

namespace hotpack {
namespace {

constexpr size_t kBatch = 64;

// Whether no work can be running after this answer: it has been waited for, or there is no driver or context any more.
// Any other failure says nothing about the work (a capture forbids to wait, or the driver could not do it now).
bool NothingRuns(CUresult result) {
  return result == CUDA_SUCCESS || result == CUDA_ERROR_DEINITIALIZED || result == CUDA_ERROR_NOT_INITIALIZED ||
         result == CUDA_ERROR_INVALID_CONTEXT || result == CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

bool SynchronizeOne(const CudaDriver& driver, CUcontext context) {
  const bool push = context != nullptr && CurrentContext(driver) != context;
  if (push) {
    const CUresult pushed = driver.CtxPushCurrent(context);
    if (pushed != CUDA_SUCCESS) return NothingRuns(pushed);
  }
  const CUresult result = driver.CtxSynchronize();
  if (push) PopContext(driver);
  return NothingRuns(result);
}

}  // namespace

StreamOrder& Order() {
  static constinit StreamOrder order;  // its only nontrivial member is a mutex, whose destructor does nothing
  return order;
}

uint64_t StreamKey(CUstream stream) {
  const auto key = reinterpret_cast<uint64_t>(stream);
  return stream == CU_STREAM_PER_THREAD ? reinterpret_cast<uint64_t>(&hook_depth) | 2 : key;
}

bool StreamOrder::Several() const {
  if (!kHooksPresent || state_.load() != kOne) return true;
  return __atomic_load_n(&hotpack_per_thread_stream_used, __ATOMIC_RELAXED) != 0;
}

bool StreamOrder::EnterSynchronize() {
  syncing_.fetch_add(1);
  if (captures_.load() == 0) return true;
  syncing_.fetch_sub(1);
  return false;
}

bool StreamOrder::Synchronize(CUcontext context) {
  const CudaDriver* driver = Driver();
  if (driver == nullptr) return true;
  if (!EnterSynchronize()) return false;
  waits_.fetch_add(1, std::memory_order_relaxed);
  const bool done = SynchronizeOne(*driver, context);
  LeaveSynchronize();
  return done;
}

// Work that uses a block can be in any context that shares its device or reaches it as a peer.
bool StreamOrder::SynchronizeContexts() {
  bool done = true;
  for (size_t i = 0;; ++i) {
    CUcontext context = nullptr;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (contexts_ == nullptr || i >= contexts_->size()) break;
      context = (*contexts_)[i];
    }
    done = Synchronize(context) && done;
  }
  return done;
}

void StreamOrder::NoteContext(CUcontext context) {
  size_t count = 0;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (contexts_ == nullptr) contexts_ = new std::vector<CUcontext>;
    if (std::find(contexts_->begin(), contexts_->end(), context) == contexts_->end()) contexts_->push_back(context);
    count = contexts_->size();
  }
  if (count > 1) SeveralStreams();
}

bool StreamOrder::SynchronizeStream(CUstream stream) {
  const CudaDriver* driver = Driver();
  if (driver == nullptr) return true;
  if (!EnterSynchronize()) return false;
  waits_.fetch_add(1, std::memory_order_relaxed);
  const bool done = NothingRuns(driver->StreamSynchronize(stream));
  LeaveSynchronize();
  return done;
}

bool StreamOrder::WaitForUse(CUstream stream) {
  if (stream == kNoStream) {
    return !(Several() || GetOptions().free_sync_always) || SynchronizeContexts();
  }
  if (!Several()) return true;
  if (!kHooksPresent && IsCapturing(stream)) return false;
  return SynchronizeStream(stream);
}

EngineStatus StreamOrder::Release(ContextArena* arena, DeviceAddress address, CUstream stream) {
  if (WaitForUse(stream)) return arena->engine->Release(address, StreamTag(stream));
  DeviceAddress base = 0;
  uint64_t bytes = 0;
  if (!arena->engine->FindBlock(address, &base, &bytes) || base != address) return EngineStatus::kInvalidValue;
  // By the time of the hand-over the stream may be gone, so with hooks everything is waited for then.
  Quarantine({arena, address, kHooksPresent ? kNoStream : stream});
  return EngineStatus::kOk;
}

void StreamOrder::Quarantine(const Waiting& waiting) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (fixed_count_ < kFixed) {
    fixed_[fixed_count_++] = waiting;
  } else {
    if (overflow_ == nullptr) overflow_ = new std::vector<Waiting>;
    overflow_->push_back(waiting);
  }
  waiting_count_.fetch_add(1, std::memory_order_relaxed);
}

size_t StreamOrder::TakeBatch(CUstream seen, Waiting* batch, size_t capacity) {
  std::lock_guard<std::mutex> lock(mutex_);
  size_t taken = 0;
  for (size_t i = fixed_count_; i-- > 0 && taken < capacity;) {
    if (!kHooksPresent && fixed_[i].stream != seen) continue;
    batch[taken++] = fixed_[i];
    fixed_[i] = fixed_[--fixed_count_];
  }
  while (overflow_ != nullptr && !overflow_->empty() && fixed_count_ < kFixed) {
    fixed_[fixed_count_++] = overflow_->back();
    overflow_->pop_back();
  }
  waiting_count_.fetch_sub(taken, std::memory_order_relaxed);
  return taken;
}

void StreamOrder::DrainSome(CUstream seen) {
  if (AnyCapture() || (!kHooksPresent && (seen == kNoStream || IsCapturing(seen)))) return;
  Waiting batch[kBatch];
  while (const size_t count = TakeBatch(seen, batch, kBatch)) {
    const bool idle = kHooksPresent ? SynchronizeContexts() : SynchronizeStream(seen);
    for (size_t i = 0; i < count; ++i) {
      if (idle) {
        batch[i].arena->engine->Release(batch[i].address, 0);
      } else {
        Quarantine(batch[i]);  // a capture has begun meanwhile
      }
    }
    if (!idle) return;
  }
}

void StreamOrder::SeveralStreams() {
  int expected = kOne;
  if (state_.compare_exchange_strong(expected, kSwitching)) {
    // What was released so far was not waited for. A driver that cannot wait is asked again.
    for (int attempt = 0; attempt < 3 && !SynchronizeContexts(); ++attempt) {
    }
    state_.store(kSeveral);
  }
  while (state_.load() == kSwitching) sched_yield();
}

void StreamOrder::BeginCapture() {
  SeveralStreams();
  captures_.fetch_add(1);
  while (syncing_.load() > 0) sched_yield();
}

void StreamOrder::CancelCapture() {
  captures_.fetch_sub(1);
  Drain();
}

void StreamOrder::CaptureBegan(CUcontext context, CUstream stream) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (began_ == nullptr) began_ = new std::vector<Capture>;
  began_->push_back({context, StreamKey(stream)});
}

void StreamOrder::CaptureMayHaveEnded(CUstream stream, bool over) {
  if (!AnyCapture() || !over) return;
  const uint64_t key = StreamKey(stream);
  // A thread has a per-thread default stream in each context, and all have the same key.
  const CudaDriver* driver = Driver();
  const CUcontext context = driver != nullptr ? CurrentContext(*driver) : nullptr;
  const bool named = stream != CU_STREAM_PER_THREAD;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (began_ == nullptr) return;
    const size_t erased = std::erase_if(*began_, [key, context, named](const Capture& capture) {
      return capture.stream == key && (named || capture.context == context);
    });
    captures_.fetch_sub(static_cast<int>(erased));
  }
  Drain();
}

bool StreamOrder::IsCapturing(CUstream stream) const {
  if (kHooksPresent && !AnyCapture()) return false;
  const CudaDriver* driver = Driver();
  if (driver == nullptr || driver->StreamIsCapturing == nullptr) return false;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  // No answer: then it may be, and the driver itself knows what to do with a request on it.
  return driver->StreamIsCapturing(stream, &status) != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE;
}

void StreamOrder::ForgetContext(CUcontext context, const ContextArena* arena) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (began_ != nullptr) {
    const size_t erased = std::erase_if(*began_, [context](const Capture& c) { return c.context == context; });
    captures_.fetch_sub(static_cast<int>(erased));
  }
  if (contexts_ != nullptr) std::erase(*contexts_, context);
  if (arena == nullptr) return;
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
  state_.store(kOne);
  captures_.store(0);
  syncing_.store(0);
  waiting_count_.store(0);
  fixed_count_ = 0;
  overflow_ = nullptr;
  began_ = nullptr;
  contexts_ = nullptr;
}

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
  return kEntries;  // more streams than anyone uses: they share an ordinal
}

}  // namespace hotpack
