// A simulated device without memory: checks that the arena keeps the driver's rules, limits memory, and fails on
// demand.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "runtime/memory/device_memory.h"

namespace hotpack {

class FakeDeviceMemory : public DeviceMemory {
 public:
  explicit FakeDeviceMemory(uint64_t total = uint64_t{16} << 30, uint64_t chunk = uint64_t{2} << 20)
      : total_(total), chunk_(chunk) {}

  uint64_t ChunkBytes() const override { return chunk_; }
  uint64_t TotalBytes() const override {
    std::lock_guard lock(mutex_);
    return total_;
  }

  // Like one plain allocation: the addresses are the memory. Call before the engine does anything.
  void SetFixed() { fixed_ = true; }
  bool Fixed() const override { return fixed_; }

  // Sets a function that every driver call begins with, without any lock of ours. It stands for concurrent threads.
  void SetHook(std::function<void(const char* call)> hook) { hook_ = std::move(hook); }

  MemoryStatus Reserve(uint64_t bytes, DeviceAddress* base) override {
    Hook("Reserve");
    std::lock_guard lock(mutex_);
    if (Fails()) return MemoryStatus::kFailed;
    if (fixed_ && bytes > total_) return MemoryStatus::kOutOfMemory;
    *base = next_;
    next_ += bytes + chunk_;
    reserved_[*base] = bytes;
    return MemoryStatus::kOk;
  }
  MemoryStatus Unreserve(DeviceAddress base, uint64_t) override {
    Hook("Unreserve");
    std::lock_guard lock(mutex_);
    if (Fails()) return MemoryStatus::kFailed;
    return reserved_.erase(base) == 1 ? MemoryStatus::kOk : Fault("unreserve of nothing");
  }
  MemoryStatus CreateChunk(ChunkHandle* chunk) override {
    Hook("CreateChunk");
    std::lock_guard lock(mutex_);
    if (down_) return MemoryStatus::kDeinitialized;
    if (Fails() || (handles_.size() + 1) * chunk_ > total_) return MemoryStatus::kOutOfMemory;
    *chunk = ++last_handle_;
    handles_.insert(*chunk);
    return MemoryStatus::kOk;
  }
  uint64_t AvailableBytes() override {
    Hook("AvailableBytes");
    std::lock_guard lock(mutex_);
    const uint64_t held = handles_.size() * chunk_;
    return Fails() ? UINT64_MAX : total_ - std::min(total_, held);
  }
  MemoryStatus ReleaseChunk(ChunkHandle chunk) override {
    Hook("ReleaseChunk");
    std::lock_guard lock(mutex_);
    if (Fails()) return MemoryStatus::kFailed;
    for (const auto& [address, mapping] : mapped_) {
      if (mapping.handle == chunk) return Fault("release of a mapped chunk");
    }
    return handles_.erase(chunk) == 1 ? MemoryStatus::kOk : Fault("release of no chunk");
  }
  MemoryStatus Map(DeviceAddress address, ChunkHandle chunk) override {
    Hook("Map");
    std::lock_guard lock(mutex_);
    if (Fails()) return MemoryStatus::kFailed;
    if (address % chunk_ != 0) return Fault("map: misaligned");
    if (handles_.count(chunk) == 0) return Fault("map of no chunk");
    for (const auto& [other, mapping] : mapped_) {
      if (mapping.handle == chunk) return Fault("chunk mapped twice");
    }
    if (!mapped_.emplace(address, Mapping{chunk, false}).second) {
      return stuck_.count(address) != 0 ? MemoryStatus::kFailed : Fault("map over a mapping");
    }
    return MemoryStatus::kOk;
  }
  MemoryStatus Enable(DeviceAddress address, uint64_t bytes) override {
    Hook("Enable");
    std::lock_guard lock(mutex_);
    if (Fails()) return MemoryStatus::kFailed;
    for (DeviceAddress a = address; a < address + bytes; a += chunk_) {
      auto it = mapped_.find(a);
      if (it == mapped_.end()) return Fault("enable of what is not mapped");
      it->second.enabled = true;
    }
    return MemoryStatus::kOk;
  }
  MemoryStatus Unmap(DeviceAddress address, uint64_t bytes) override {
    Hook("Unmap");
    std::lock_guard lock(mutex_);
    if (Fails()) {
      for (DeviceAddress a = address; a < address + bytes; a += chunk_) stuck_.insert(a);
      return MemoryStatus::kFailed;
    }
    for (DeviceAddress a = address; a < address + bytes; a += chunk_) {
      if (mapped_.erase(a) != 1) return Fault("unmap of what is not mapped");
    }
    ++unmaps_;
    return MemoryStatus::kOk;
  }
  bool Synchronize() override {
    Hook("Synchronize");
    std::lock_guard lock(mutex_);
    ++synchronizations_;
    return !capturing_ && !Fails();
  }

  // Whether every byte of [address, address + bytes) may be accessed.
  bool Accessible(DeviceAddress address, uint64_t bytes) {
    std::lock_guard lock(mutex_);
    for (DeviceAddress a = address & ~(chunk_ - 1); a < address + bytes; a += chunk_) {
      auto it = mapped_.find(a);
      if (it == mapped_.end() || !it->second.enabled) return false;
    }
    return true;
  }
  uint64_t Held() {  // physical bytes
    std::lock_guard lock(mutex_);
    return handles_.size() * chunk_;
  }
  uint64_t Calls() {
    std::lock_guard lock(mutex_);
    return calls_;
  }
  std::string FirstFault() {  // the first breach of the driver's rules; empty: none
    std::lock_guard lock(mutex_);
    return fault_;
  }
  void FailEvery(uint64_t k) {  // every k-th call fails; 0: none
    std::lock_guard lock(mutex_);
    fail_every_ = k;
  }
  void SetTotal(uint64_t total) {  // other processes take memory, or give it back
    std::lock_guard lock(mutex_);
    total_ = total;
  }
  void SetDown() {  // the driver is shutting down
    std::lock_guard lock(mutex_);
    down_ = true;
  }
  uint64_t unmaps() {  // successful calls of Unmap
    std::lock_guard lock(mutex_);
    return unmaps_;
  }
  uint64_t stuck() {  // calls of Unmap that failed
    std::lock_guard lock(mutex_);
    return stuck_.size();
  }
  void SetCapturing(bool capturing) {
    std::lock_guard lock(mutex_);
    capturing_ = capturing;
  }
  uint64_t synchronizations() {
    std::lock_guard lock(mutex_);
    return synchronizations_;
  }

 private:
  struct Mapping {
    ChunkHandle handle;
    bool enabled;
  };
  void Hook(const char* call) {
    if (hook_) hook_(call);
  }
  bool Fails() {
    ++calls_;
    return fail_every_ != 0 && calls_ % fail_every_ == 0;
  }
  MemoryStatus Fault(const char* what) {
    if (fault_.empty()) fault_ = what;
    return MemoryStatus::kFailed;
  }

  uint64_t total_, chunk_;
  mutable std::mutex mutex_;
  std::function<void(const char*)> hook_;
  DeviceAddress next_ = uint64_t{1} << 40;
  std::map<DeviceAddress, uint64_t> reserved_;
  std::map<DeviceAddress, Mapping> mapped_;
  std::set<DeviceAddress> stuck_;
  std::set<ChunkHandle> handles_;
  ChunkHandle last_handle_ = 0;
  uint64_t calls_ = 0, fail_every_ = 0, synchronizations_ = 0, unmaps_ = 0;
  bool capturing_ = false, down_ = false, fixed_ = false;
  std::string fault_;
};

}  // namespace hotpack
