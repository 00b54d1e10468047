// DeviceMemory that is one piece of cuMemAlloc: for programs that need what virtual memory management does not give
// (legacy IPC of the whole arena, RDMA) and for devices without it. By option: it holds all of it from the first
// request on.
#pragma once

#include "runtime/memory/cuda_device_memory.h"

namespace hotpack {

// Every address has its own memory, so mapping and unmapping chunks is bookkeeping alone and cannot fail: only Reserve
// and Unreserve call the driver. Memory that was unmapped may be mapped again at its own address, never elsewhere.
class PlainDeviceMemory : public ContextMemory {
 public:
  static constexpr uint64_t kDefault = 0;

  // `bytes`: how much to take; kDefault: nine tenths of what is free at Initialize().
  PlainDeviceMemory(const CudaDriver* driver, CUcontext context, SynchronizeContext synchronize, uint64_t bytes)
      : ContextMemory(driver, context, synchronize), wanted_bytes_(bytes) {}

  bool Fixed() const override { return true; }
  MemoryStatus Initialize() override;                                  // kNotSupported: less than 64 chunks' worth
  MemoryStatus Reserve(uint64_t bytes, DeviceAddress* base) override;  // kOutOfMemory for more than TotalBytes()
  MemoryStatus Unreserve(DeviceAddress base, uint64_t bytes) override;
  MemoryStatus CreateChunk(ChunkHandle* chunk) override;
  MemoryStatus ReleaseChunk(ChunkHandle chunk) override;
  MemoryStatus Map(DeviceAddress address, ChunkHandle chunk) override;
  MemoryStatus Enable(DeviceAddress address, uint64_t bytes) override;
  MemoryStatus Unmap(DeviceAddress address, uint64_t bytes) override;
  void ReleaseAll(bool context_alive) override;

 private:
  MemoryStatus Status() const { return supported_ ? MemoryStatus::kOk : MemoryStatus::kNotSupported; }

  const uint64_t wanted_bytes_;
  std::atomic<CUdeviceptr> allocation_{0};  // as cuMemAlloc gave it; the reservation begins at the next chunk boundary
};

}  // namespace hotpack
