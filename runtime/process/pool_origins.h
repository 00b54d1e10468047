// Which live blocks of an arena were requested from a pool (cuMemAllocAsync) rather than by cuMemAlloc. Programs can
// query that (CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE), while the engine treats both alike.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/memory/device_memory.h"

namespace hotpack {

class Engine;

// One byte per 512 of the arena's addresses, reserved when the first block of a pool is served. A program without pools
// pays one load and one compare per request. The bytes are only address space (a 512th of the arena's). Pages become
// memory when a served block is marked there. Thread-safe; a program that hands a block to another thread must order
// its calls.
class PoolOrigins {
 public:
  // Records the origin of the block at `address`, which `engine` has just served.
  void Note(const Engine& engine, DeviceAddress address, bool of_pool) {
    if (marks_.load(std::memory_order_acquire) == nullptr && (!of_pool || !Make(engine))) [[likely]]
      return;
    Set(address, of_pool);
  }
  // Returns whether the live block that starts at `address` is memory of a pool. Also false if there was no memory for
  // the marks, and for blocks outside the arena (managed memory).
  bool OfPool(DeviceAddress address) const;

 private:
  bool Make(const Engine& engine);
  void Set(DeviceAddress address, bool of_pool);

  std::atomic<uint8_t*> marks_{nullptr};
  std::atomic<DeviceAddress> base_{0};  // written before marks_
  std::atomic<uint64_t> bytes_{0};      // ... of the arena's addresses
};

}  // namespace hotpack
