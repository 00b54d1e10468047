// A simulated device without memory that also has managed memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>

#include "tests/runtime/fake_device_memory.h"

namespace hotpack {

class ManagedDeviceMemory : public FakeDeviceMemory {
 public:
  using FakeDeviceMemory::FakeDeviceMemory;
  MemoryStatus AllocateManaged(uint64_t bytes, DeviceAddress* address) override {
    Hook("AllocateManaged");
    std::lock_guard lock(mutex_);
    if (refuse_) return MemoryStatus::kOutOfMemory;
    *address = next_;
    next_ += bytes + (uint64_t{4} << 20);
    segments_[*address] = bytes;
    most_ = std::max(most_, HeldManaged());
    return MemoryStatus::kOk;
  }
  MemoryStatus FreeManaged(DeviceAddress address) override {
    std::lock_guard lock(mutex_);
    faults_ += segments_.erase(address) == 1 ? 0 : 1;
    return MemoryStatus::kOk;
  }
  // Like Accessible(), in managed memory too.
  bool Reachable(DeviceAddress address, uint64_t bytes) {
    return InManaged(address, bytes) || Accessible(address, bytes);
  }
  bool InManaged(DeviceAddress address, uint64_t bytes) {
    std::lock_guard lock(mutex_);
    auto it = segments_.upper_bound(address);
    if (it == segments_.begin()) return false;
    --it;
    return address + bytes <= it->first + it->second;
  }
  uint64_t held_managed() {
    std::lock_guard lock(mutex_);
    return HeldManaged();
  }
  uint64_t most_managed() {  // ever held at once, bytes
    std::lock_guard lock(mutex_);
    return most_;
  }
  void SetNext(DeviceAddress next) { next_ = next; }
  void Refuse() { refuse_ = true; }
  int faults() const { return faults_; }

 private:
  uint64_t HeldManaged() const {
    uint64_t sum = 0;
    for (const auto& [address, bytes] : segments_) sum += bytes;
    return sum;
  }

  std::mutex mutex_;
  std::map<DeviceAddress, uint64_t> segments_;
  DeviceAddress next_ = uint64_t{1} << 45;
  uint64_t most_ = 0;
  int faults_ = 0;
  bool refuse_ = false;
};

}  // namespace hotpack
