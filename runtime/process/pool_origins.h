// Which live blocks of an arena were asked for as memory of a pool (cuMemAllocAsync) and not by cuMemAlloc: programs
// can ask (CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE), and the engine treats both alike.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/memory/device_memory.h"

namespace hotpack {

class Engine;

// A byte for each 512 of the arena's addresses, made when the first block of a pool is served: a program that uses none
// pays one load and one compare a request. The bytes are address space (a 512th of the arena's); only pages with the
// mark of a block that was served become memory. Thread-safe; whoever hands a block to another thread orders its calls.
class PoolOrigins {
 public:
  // The block at `address` has just been served by `engine`.
  void Note(const Engine& engine, DeviceAddress address, bool of_pool) {
    if (marks_.load(std::memory_order_acquire) == nullptr && (!of_pool || !Make(engine))) [[likely]]
      return;
    Set(address, of_pool);
  }
  // Whether the live block that starts at `address` is memory of a pool. False too if there was no room for the marks,
  // and for blocks outside the arena (managed memory).
  bool OfPool(DeviceAddress address) const;

 private:
  bool Make(const Engine& engine);
  void Set(DeviceAddress address, bool of_pool);

  std::atomic<uint8_t*> marks_{nullptr};
  std::atomic<DeviceAddress> base_{0};  // written before marks_
  std::atomic<uint64_t> bytes_{0};      // ... of the arena's addresses
};

}  // namespace hotpack
