// DeviceMemory that is one allocation of cuMemAlloc. For devices without virtual memory management, and for programs
// that need features which it lacks (legacy IPC of the whole arena, RDMA). Optional: it holds all of its memory from
// the first request on.
#pragma once

#include "runtime/memory/cuda_device_memory.h"

namespace hotpack {

// Every address has its own memory, so mapping and unmapping chunks is only bookkeeping and cannot fail. Only Reserve
// and Unreserve call the driver. Unmapped memory may be mapped again at its own address, never elsewhere.
class PlainDeviceMemory : public ContextMemory {
 public:
  static constexpr uint64_t kDefault = 0;

  // `bytes`: size to allocate; kDefault: nine tenths of the memory free at Initialize().
  PlainDeviceMemory(const CudaDriver* driver, CUcontext context, SynchronizeContext synchronize, uint64_t bytes)
      : ContextMemory(driver, context, synchronize), wanted_bytes_(bytes) {}

  bool Fixed() const override { return true; }
  MemoryStatus Initialize() override;                                  // kNotSupported: less than 64 chunks
  MemoryStatus Reserve(uint64_t bytes, DeviceAddress* base) override;  // kOutOfMemory for more than TotalBytes()
  MemoryStatus Unreserve(DeviceAddress base, uint64_t bytes) override;
  MemoryStatus CreateChunk(uint64_t bytes, ChunkHandle* chunk) override;
  MemoryStatus ReleaseChunk(ChunkHandle chunk) override;
  MemoryStatus Map(DeviceAddress address, uint64_t bytes, ChunkHandle chunk) override;
  MemoryStatus Enable(DeviceAddress address, uint64_t bytes) override;
  MemoryStatus Unmap(DeviceAddress address, uint64_t bytes) override;
  void ReleaseAll(bool context_alive) override;

 private:
  MemoryStatus Status() const { return supported_ ? MemoryStatus::kOk : MemoryStatus::kNotSupported; }

  const uint64_t wanted_bytes_;
  // As returned by cuMemAlloc; the reservation begins at the next chunk boundary.
  std::atomic<CUdeviceptr> allocation_{0};
};

}  // namespace hotpack
