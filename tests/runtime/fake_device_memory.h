// A simulated device without memory: checks that the arena keeps the driver's rules, limits memory, and fails on
// demand.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

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
  // Call before the engine does anything.
  void SetExtents(const ExtentLimits& extents) { extents_ = extents; }
  ExtentLimits Extents() const override { return extents_; }

  MemoryStatus CreateChunk(uint64_t bytes, ChunkHandle* chunk) override {
    Hook("CreateChunk");
    std::lock_guard lock(mutex_);
    ++creates_;
    if (down_) return MemoryStatus::kDeinitialized;
    if (bytes == 0 || bytes % chunk_ != 0) return Fault("create: not whole chunks");
    if (Fails() || held_ + bytes > total_) return MemoryStatus::kOutOfMemory;
    *chunk = ++last_handle_;
    handles_[*chunk] = bytes;
    held_ += bytes;
    return MemoryStatus::kOk;
  }
  uint64_t AvailableBytes() override {
    Hook("AvailableBytes");
    std::lock_guard lock(mutex_);
    return Fails() ? UINT64_MAX : total_ - std::min(total_, held_);
  }
  MemoryStatus ReleaseChunk(ChunkHandle chunk) override {
    Hook("ReleaseChunk");
    std::lock_guard lock(mutex_);
    if (Fails()) return MemoryStatus::kFailed;
    if (mapped_handles_.count(chunk) != 0) return Fault("release of a mapped chunk");
    const auto found = handles_.find(chunk);
    if (found == handles_.end()) return Fault("release of no chunk");
    held_ -= found->second;
    handles_.erase(found);
    return MemoryStatus::kOk;
  }
  MemoryStatus Map(DeviceAddress address, uint64_t bytes, ChunkHandle chunk) override {
    Hook("Map");
    std::lock_guard lock(mutex_);
    if (Fails()) return MemoryStatus::kFailed;
    if (address % chunk_ != 0) return Fault("map: misaligned");
    const auto found = handles_.find(chunk);
    if (found == handles_.end() || found->second != bytes) return Fault("map of no chunk, or of a part of one");
    if (mapped_handles_.count(chunk) != 0) return Fault("chunk mapped twice");
    const auto next = mapped_.lower_bound(address);
    const bool over_next = next != mapped_.end() && next->first < address + bytes;
    const bool over_previous =
        next != mapped_.begin() && std::prev(next)->first + std::prev(next)->second.bytes > address;
    if (over_next || over_previous) {
      return stuck_.count(address) != 0 ? MemoryStatus::kFailed : Fault("map over a mapping");
    }
    mapped_.emplace(address, Mapping{chunk, bytes, false});
    mapped_handles_.insert(chunk);
    return MemoryStatus::kOk;
  }
  MemoryStatus Enable(DeviceAddress address, uint64_t bytes) override {
    Hook("Enable");
    std::lock_guard lock(mutex_);
    if (Fails()) return MemoryStatus::kFailed;
    if (!WholeMappings(address, bytes)) return Fault("enable of what is not mapped, or of a part of a mapping");
    for (auto it = mapped_.find(address); it != mapped_.end() && it->first < address + bytes; ++it) {
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
    if (!WholeMappings(address, bytes)) return Fault("unmap of what is not mapped, or of a part of a mapping");
    const auto first = mapped_.find(address), end = mapped_.lower_bound(address + bytes);
    if (busy_ && first->second.enabled) return Fault("unmap while work may use the memory");
    for (auto it = first; it != end; ++it) mapped_handles_.erase(it->second.handle);
    mapped_.erase(first, end);
    ++unmaps_;
    return MemoryStatus::kOk;
  }
  bool Synchronize() override {
    Hook("Synchronize");
    std::lock_guard lock(mutex_);
    ++synchronizations_;
    if (capturing_ || Fails()) return false;
    busy_ = false;
    return true;
  }
  DeviceWait SynchronizeWithin(uint64_t microseconds) override {
    {
      std::lock_guard lock(mutex_);
      limits_.push_back(microseconds);
      if (busy_ && !capturing_) return DeviceWait::kUnfinished;
    }
    return DeviceMemory::SynchronizeWithin(microseconds);
  }

  // Whether every byte of [address, address + bytes) may be accessed.
  bool Accessible(DeviceAddress address, uint64_t bytes) {
    std::lock_guard lock(mutex_);
    for (DeviceAddress a = address; a < address + bytes;) {
      auto it = mapped_.upper_bound(a);
      if (it == mapped_.begin()) return false;
      --it;
      if (it->first + it->second.bytes <= a || !it->second.enabled) return false;
      a = it->first + it->second.bytes;
    }
    return true;
  }
  uint64_t Held() {  // physical bytes
    std::lock_guard lock(mutex_);
    return held_;
  }
  uint64_t creates() {  // calls of CreateChunk
    std::lock_guard lock(mutex_);
    return creates_;
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
  bool MayWait() const override {
    std::lock_guard lock(mutex_);
    return !capturing_;
  }
  // Work is unfinished until a thread waits for it without a limit.
  void SetBusy(bool busy) {
    std::lock_guard lock(mutex_);
    busy_ = busy;
  }
  std::vector<uint64_t> limits() {  // of all calls of SynchronizeWithin, in microseconds
    std::lock_guard lock(mutex_);
    return limits_;
  }
  uint64_t synchronizations() {  // calls of Synchronize
    std::lock_guard lock(mutex_);
    return synchronizations_;
  }

 protected:
  void Hook(const char* call) {
    if (hook_) hook_(call);
  }

 private:
  struct Mapping {
    ChunkHandle handle;
    uint64_t bytes;
    bool enabled;
  };
  bool Fails() {
    ++calls_;
    return fail_every_ != 0 && calls_ % fail_every_ == 0;
  }
  // Whether [address, address + bytes) consists of whole mappings. The driver changes no part of one.
  bool WholeMappings(DeviceAddress address, uint64_t bytes) const {
    DeviceAddress at = address;
    while (at < address + bytes) {
      const auto it = mapped_.find(at);
      if (it == mapped_.end()) return false;
      at += it->second.bytes;
    }
    return at == address + bytes;
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
  std::set<ChunkHandle> mapped_handles_;
  std::set<DeviceAddress> stuck_;
  std::map<ChunkHandle, uint64_t> handles_;  // their bytes
  uint64_t held_ = 0, creates_ = 0;
  ExtentLimits extents_ = {0};
  ChunkHandle last_handle_ = 0;
  uint64_t calls_ = 0, fail_every_ = 0, synchronizations_ = 0, unmaps_ = 0;
  bool capturing_ = false, down_ = false, fixed_ = false, busy_ = false;
  std::vector<uint64_t> limits_;
  std::string fault_;
};

}  // namespace hotpack
