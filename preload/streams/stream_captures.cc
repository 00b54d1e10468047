// Captures in StreamOrder: quarantined releases, and events before the first capture begins.
#include <sched.h>

#include "preload/process/driver_access.h"
#include "preload/process/hook_scope.h"
#include "preload/streams/graph_memory.h"
#include "preload/streams/stream_order.h"

namespace hotpack {
namespace {

constexpr size_t kBatch = 64;

}  // namespace

uint64_t StreamKey(CUstream stream) {
  const auto key = reinterpret_cast<uint64_t>(stream);
  return stream == CU_STREAM_PER_THREAD ? reinterpret_cast<uint64_t>(&hook_depth) | 2 : key;
}

// --- releases that wait ----------------------------------------------------------------------------------------------

EngineStatus StreamOrder::ReleaseLater(ContextArena* arena, DeviceAddress address, CUstream stream) {
  DeviceAddress base = 0;
  uint64_t bytes = 0;
  if (!arena->engine->FindBlock(address, &base, &bytes) || base != address) return EngineStatus::kInvalidValue;
  // The stream may be gone at the hand-over, so with hooks it counts as any stream then.
  Quarantine({arena, address, Seen() ? kNoStream : stream});
  return EngineStatus::kOk;
}

void StreamOrder::Quarantine(const Waiting& waiting) {
  NotSimple();
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
    if (!Seen() && fixed_[i].stream != seen) continue;
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
  if (AnyCapture() || (!Seen() && (seen == kNoStream || IsCapturing(seen)))) return;
  for (const GraphMemory::Block& block : GraphBlocks().TakeFreed()) Quarantine({block.arena, block.address, kNoStream});
  const bool waits = !Seen() || state_.load() == kSynchronous;
  Waiting batch[kBatch];
  while (const size_t count = TakeBatch(seen, batch, kBatch)) {
    const bool idle = !waits || (Seen() ? SynchronizeContexts() : SynchronizeStream(seen));
    for (size_t i = 0; i < count; ++i) {
      if (!idle || AnyCapture()) {
        Quarantine(batch[i]);  // a capture has begun meanwhile
      } else if (waits) {
        batch[i].arena->engine->Release(batch[i].address, 0);
      } else {
        const ReuseAfter after = StampOf(batch[i].arena->engine, kNoStream, batch[i].address, ReleaseKind::kOrdered);
        batch[i].arena->engine->Release(batch[i].address, 0, &after);
      }
    }
    if (!idle || AnyCapture()) return;
  }
}

// --- captures --------------------------------------------------------------------------------------------------------

void StreamOrder::BeginCapture(CUstream stream) {
  NotSimple();
  if (stream != CU_STREAM_PER_THREAD && reinterpret_cast<uintptr_t>(stream) > 2) FirstUse(stream);
  // One at a time: nothing may be submitted to the legacy stream once one is capturing.
  while (beginning_.exchange(true)) sched_yield();
  const bool first = captures_.fetch_add(1) == 0;
  while (syncing_.load() > 0) sched_yield();
  if (first && Driver() != nullptr) RecordAll(tick_.load());
  beginning_.store(false);
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
  // A thread's per-thread default streams, one in each context, have the same key.
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
  if (Seen() && !AnyCapture()) return false;
  const CudaDriver* driver = Driver();
  if (driver == nullptr || driver->StreamIsCapturing == nullptr) return false;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  // On failure the stream may be capturing; the driver itself can handle a request on it.
  return driver->StreamIsCapturing(stream, &status) != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE;
}

}  // namespace hotpack
