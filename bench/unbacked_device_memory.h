// A device of addresses without memory behind them: driver calls succeed and cost nothing, so that a benchmark of the
// engine measures the engine.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/memory/device_memory.h"

namespace hotpack::bench {

class UnbackedDeviceMemory : public DeviceMemory {
 public:
  explicit UnbackedDeviceMemory(uint64_t bytes = uint64_t{16} << 30) : bytes_(bytes) {}
  uint64_t ChunkBytes() const override { return uint64_t{2} << 20; }
  uint64_t TotalBytes() const override { return bytes_; }
  MemoryStatus Reserve(uint64_t bytes, DeviceAddress* base) override {
    *base = next_address_.fetch_add((bytes + ChunkBytes() - 1) / ChunkBytes() * ChunkBytes());
    return MemoryStatus::kOk;
  }
  MemoryStatus Unreserve(DeviceAddress, uint64_t) override { return MemoryStatus::kOk; }
  MemoryStatus CreateChunk(uint64_t, ChunkHandle* chunk) override {
    *chunk = next_chunk_.fetch_add(1);
    return MemoryStatus::kOk;
  }
  MemoryStatus ReleaseChunk(ChunkHandle) override { return MemoryStatus::kOk; }
  MemoryStatus Map(DeviceAddress, uint64_t, ChunkHandle) override { return MemoryStatus::kOk; }
  MemoryStatus Enable(DeviceAddress, uint64_t) override { return MemoryStatus::kOk; }
  MemoryStatus Unmap(DeviceAddress, uint64_t) override { return MemoryStatus::kOk; }
  bool Synchronize() override { return true; }

 private:
  const uint64_t bytes_;
  std::atomic<DeviceAddress> next_address_{uint64_t{1} << 40};
  std::atomic<ChunkHandle> next_chunk_{1};
};

}  // namespace hotpack::bench
