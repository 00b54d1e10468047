// The addresses that an engine answers for, readable without its lock.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/memory/device_memory.h"

namespace hotpack {

// The arena's reservation. Set once. Lock-free.
class OwnedRange {
 public:
  // `guarded`: debug mode, in which releases take the slow path: Has() is then false for every address.
  void Set(DeviceAddress base, uint64_t bytes, bool guarded) {
    bytes_.store(bytes, std::memory_order_relaxed);
    (guarded ? guarded_base_ : base_).store(base, std::memory_order_release);
  }
  bool Has(DeviceAddress address) const {
    const DeviceAddress base = base_.load(std::memory_order_acquire);
    return base != 0 && address - base < bytes_.load(std::memory_order_relaxed);
  }
  bool HasGuarded(DeviceAddress address) const {
    const DeviceAddress base = guarded_base_.load(std::memory_order_acquire);
    return base != 0 && address - base < bytes_.load(std::memory_order_relaxed);
  }
  // Returns false if there is no arena yet, and in debug mode.
  bool Get(DeviceAddress* base, uint64_t* bytes) const {
    *base = base_.load(std::memory_order_acquire);
    *bytes = bytes_.load(std::memory_order_relaxed);
    return *base != 0;
  }

 private:
  std::atomic<DeviceAddress> base_{0};
  std::atomic<uint64_t> bytes_{0};
  std::atomic<DeviceAddress> guarded_base_{0};  // in debug mode, instead of base_
};

}  // namespace hotpack
