// Green contexts. Each is a context of its own for streams and events (StreamOrder, 7.). Memory that is allocated with
// one current belongs to its device's primary context, and outlives it (cuda.h, cuCtxFromGreenCtx). So a green context
// has no arena: its requests are served from the primary one's.
#pragma once

#include <atomic>

#include "preload/process/driver_access.h"

namespace hotpack {

// Thread-safe.
class GreenContexts {
 public:
  // Returns the primary context of a green context, `context` itself for any other. Asks the driver the first time.
  CUcontext OwnerOf(CUcontext context);
  // Returns false if no green context has been seen.
  bool Any() const { return count_.load(std::memory_order_acquire) != 0; }
  // Call when the green context has ended: its handle may be another context's soon.
  void Forget(CUcontext context);

 private:
  struct Slot {
    std::atomic<CUcontext> green{nullptr}, owner{nullptr};
  };
  static constexpr size_t kCapacity = 64;  // further ones are asked for each time
  Slot slots_[kCapacity];
  std::atomic<size_t> count_{0};  // slots [0, count_) have been used
};

extern constinit GreenContexts process_green_contexts;
inline GreenContexts& Greens() { return process_green_contexts; }

}  // namespace hotpack
