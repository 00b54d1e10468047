#include "preload/streams/context_events.h"

#include <algorithm>
#include <new>

#include "preload/process/current_scope.h"
#include "preload/streams/order_cost.h"

namespace hotpack {

constinit thread_local StreamOrderCost order_cost;

ContextEvents::Slot* ContextEvents::Find(CUcontext context) {
  Slot* const slot =
      std::find_if(slots_, slots_ + kContexts, [context](const Slot& s) { return s.context == context; });
  return slot == slots_ + kContexts ? nullptr : slot;
}

const ContextEvents::Slot* ContextEvents::Find(CUcontext context) const {
  return const_cast<ContextEvents*>(this)->Find(context);
}

bool ContextEvents::Add(CUcontext context) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (Find(context) != nullptr) return true;
  Slot* const slot = Find(nullptr);
  if (slot == nullptr) return false;
  *slot = {};
  slot->context = context;
  count_.fetch_add(1);
  return true;
}

void ContextEvents::Forget(CUcontext context) {
  std::lock_guard<std::mutex> lock(mutex_);
  Slot* const slot = Find(context);
  if (slot == nullptr) return;
  *slot = {};
  count_.fetch_sub(1);
}

size_t ContextEvents::List(Contexts* contexts) const {
  std::lock_guard<std::mutex> lock(mutex_);
  size_t count = 0;
  for (const Slot& slot : slots_) {
    if (slot.context != nullptr) (*contexts)[count++] = slot.context;
  }
  return count;
}

ContextEvents::Recorded ContextEvents::After(CUcontext context, uint64_t tick) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const Slot* const slot = Find(context);
  if (slot == nullptr) return {};
  if (tick <= slot->ring.done) return {nullptr, slot->ring.done, true};
  const uint32_t k = slot->ring.After(tick);
  return k == EventRing::kEvents ? Recorded{} : Recorded{slot->ring.events[k], slot->ring.ticks[k]};
}

ContextEvents::Recorded ContextEvents::Record(const CudaDriver& driver, CUcontext context, uint64_t tick) {
  if (driver.CtxRecordEvent == nullptr || driver.EventCreate == nullptr) return {};
  CUevent event = nullptr;
  uint32_t k = 0;
  uint64_t before = 0;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    Slot* const slot = Find(context);
    if (slot == nullptr) return {};
    k = slot->ring.Begin(&before);
    if (k == EventRing::kEvents) return {};
    event = slot->ring.events[k];
  }
  CUresult result = CUDA_SUCCESS;
  bool finished = false;
  {
    CurrentScope scope(driver, context);
    if (!scope) result = CUDA_ERROR_INVALID_CONTEXT;
    if (result == CUDA_SUCCESS && event == nullptr) result = driver.EventCreate(&event, CU_EVENT_DISABLE_TIMING);
    finished = result == CUDA_SUCCESS && before != 0 && IsFinished(driver, event);
    if (result == CUDA_SUCCESS) result = driver.CtxRecordEvent(context, event);
  }
  ++order_cost.events;
  std::lock_guard<std::mutex> lock(mutex_);
  Slot* const slot = Find(context);
  if (slot == nullptr) return {};  // forgotten meanwhile, with its events
  slot->ring.Commit(k, event, result == CUDA_SUCCESS ? tick : 0, finished ? before : 0);
  return result == CUDA_SUCCESS ? Recorded{event, tick} : Recorded{};
}

void ContextEvents::ResetAfterFork() {
  new (&mutex_) std::mutex;  // another thread of the parent may have held it
  std::fill(slots_, slots_ + kContexts, Slot{});
  count_.store(0);
}

}  // namespace hotpack
