// Events that stand for all work of a context, on any stream, also on unnamed or ended ones (cuCtxRecordEvent, CUDA
// driver API 12.5).
#pragma once

#include <cuda.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "preload/streams/event_ring.h"
#include "runtime/memory/cuda_driver.h"

namespace hotpack {

// Thread-safe. The lock is never held across a driver call. Zero-initialised: a static object needs no constructor.
class ContextEvents {
 public:
  static constexpr size_t kContexts = 64;
  using Contexts = std::array<CUcontext, kContexts>;

  // Adds a context. Returns false if there are kContexts already.
  bool Add(CUcontext context);
  void Forget(CUcontext context);  // its events ended with it
  // Writes the contexts and returns their number.
  size_t List(Contexts* contexts) const;
  size_t size() const { return count_.load(std::memory_order_acquire); }

  struct Recorded {
    CUevent event = nullptr;  // null: no event
    uint64_t tick = 0;        // it stands for all releases up to this tick
    bool finished = false;    // all work before those releases is finished: needs no event
  };
  // Returns the context's earliest event that stands for at least the releases up to `tick`. It may be recorded again
  // at any moment; then it stands for more.
  Recorded After(CUcontext context, uint64_t tick) const;
  // Records an event now. `tick`: the last release, read before the call. The caller has checked that no stream of the
  // context is capturing, because the driver would invalidate that capture. Returns a null event if the driver refused
  // or has no such function.
  Recorded Record(const CudaDriver& driver, CUcontext context, uint64_t tick);

  void ResetAfterFork();

 private:
  struct Slot {
    CUcontext context;  // null: free
    EventRing ring;
  };
  Slot* Find(CUcontext context);
  const Slot* Find(CUcontext context) const;

  mutable std::mutex mutex_;
  std::atomic<size_t> count_{0};  // contexts
  Slot slots_[kContexts] = {};
};

}  // namespace hotpack
