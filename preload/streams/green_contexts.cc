#include "preload/streams/green_contexts.h"

#include <algorithm>

#include "preload/process/current_scope.h"

namespace hotpack {

constinit GreenContexts process_green_contexts;

CUcontext GreenContexts::OwnerOf(CUcontext context) {
  const size_t count = std::min(count_.load(std::memory_order_acquire), kCapacity);
  for (size_t i = 0; i < count; ++i) {
    if (slots_[i].green.load(std::memory_order_acquire) == context) {
      if (const CUcontext owner = slots_[i].owner.load(std::memory_order_acquire)) return owner;
    }
  }
  const CudaDriver* driver = Driver();
  if (context == nullptr || driver == nullptr || driver->StreamGetBothContexts == nullptr) return context;
  const CurrentScope scope(*driver, context);
  CUcontext owner = nullptr;
  CUgreenCtx green = nullptr;
  if (!scope || driver->StreamGetBothContexts(CU_STREAM_LEGACY, &owner, &green) != CUDA_SUCCESS || green == nullptr ||
      owner == nullptr || owner == context) {
    return context;
  }
  for (size_t i = 0; i < kCapacity; ++i) {
    CUcontext free = nullptr;
    if (!slots_[i].green.compare_exchange_strong(free, context)) continue;
    slots_[i].owner.store(owner, std::memory_order_release);
    size_t known = count_.load();
    while (known < i + 1 && !count_.compare_exchange_weak(known, i + 1)) {
    }
    break;
  }
  return owner;
}

void GreenContexts::Forget(CUcontext context) {
  for (Slot& slot : slots_) {
    if (slot.green.load(std::memory_order_acquire) != context) continue;
    slot.owner.store(nullptr);
    slot.green.store(nullptr);
  }
}

}  // namespace hotpack
