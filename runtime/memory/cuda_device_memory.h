// DeviceMemory on the CUDA driver's virtual memory management (cuMemAddressReserve, cuMemCreate, cuMemMap), and what it
// has in common with the other kind (plain_device_memory.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "runtime/memory/cuda_driver.h"
#include "runtime/memory/device_memory.h"

namespace hotpack {

// Waits until all work submitted to `context` (null: the current one) has finished. False: not possible now, because a
// stream is capturing, or the driver failed. Given by whoever sees the captures (preload/streams/stream_order.h).
using SynchronizeContext = bool (*)(CUcontext context);

// Memory of one context's device. Thread-safe. Every function makes its context current for as long as it runs when the
// calling thread has another one, or none (frees come from foreign threads), and puts the thread's stream capture mode
// to relaxed meanwhile, so that growth while some stream is capturing breaks no capture. No lock is held across a
// driver call.
class ContextMemory : public DeviceMemory {
 public:
  // `driver` must outlive this object. Makes no driver call.
  ContextMemory(const CudaDriver* driver, CUcontext context, SynchronizeContext synchronize)
      : driver_(driver), context_(context), synchronize_(synchronize) {}

  // Asks the driver about the context's device; the context must be current. Call once, before anything else.
  // kNotSupported: this kind of memory cannot be had here; all other functions then say so too.
  virtual MemoryStatus Initialize() = 0;
  // Gives everything that is still held back to the driver: for the end of the context. No work may be using it, and no
  // other function is called afterwards. Errors are ignored. `context_alive`: the context can still be made current.
  virtual void ReleaseAll(bool context_alive) = 0;
  // No more than so many bytes are taken from the device from now on; what is held already stays. UINT64_MAX: no limit.
  // Only for memory that is taken piece by piece.
  void SetLimit(uint64_t bytes) { limit_.store(bytes, std::memory_order_relaxed); }
  uint64_t limit() const { return limit_.load(std::memory_order_relaxed); }

  // Another device may use this memory from now on: what is mapped and what will be. For memory whose access the driver
  // manages itself there is nothing to do. Errors are ignored: the driver then refuses the device's accesses.
  virtual void AddPeer(CUdevice) {}

  uint64_t ChunkBytes() const override { return chunk_bytes_; }
  uint64_t TotalBytes() const override { return total_bytes_; }
  bool Synchronize() override;
  MemoryStatus AllocateManaged(uint64_t bytes, DeviceAddress* address) override;
  MemoryStatus FreeManaged(DeviceAddress address) override;
  MemoryStatus Fill(DeviceAddress address, uint64_t bytes, uint8_t value) override;
  MemoryStatus Read(DeviceAddress address, uint64_t bytes, void* to) override;

  CUcontext context() const { return context_; }
  CUdevice device() const { return device_; }
  // Driver calls made on behalf of the DeviceMemory functions (one each; context switches are not counted).
  uint64_t DriverCalls() const { return driver_calls_.load(std::memory_order_relaxed); }

 protected:
  class Scope;
  MemoryStatus Count(CUresult result);

  const CudaDriver* const driver_;
  const CUcontext context_;
  const SynchronizeContext synchronize_;
  CUdevice device_ = 0;
  bool supported_ = false;
  uint64_t chunk_bytes_ = 2u << 20;
  uint64_t total_bytes_ = 0;

 private:
  CUstream OwnStream();
  std::atomic<uint64_t> limit_{UINT64_MAX};

  std::atomic<uint64_t> driver_calls_{0};
  std::atomic<CUstream> own_stream_{nullptr};  // of Fill and Read; goes with the context
};

// Makes the context current and the thread's capture mode relaxed while it lives. cuMemCreate, cuMemAlloc and their
// like count as "potentially unsafe" calls while a stream is capturing in global mode (cuda.h,
// cuThreadExchangeStreamCaptureMode).
class ContextMemory::Scope {
 public:
  explicit Scope(const ContextMemory& memory);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  const CudaDriver* const driver_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
  bool pushed_ = false;
  bool exchanged_ = false;
};

// Chunks of the driver's minimum granularity, at least 64 KiB; usable by GPUDirect RDMA where the device supports that
// for such memory. cuCtxDestroy does not take memory of cuMemCreate with it (cuda.h), so ReleaseAll matters.
class CudaDeviceMemory : public ContextMemory {
 public:
  using ContextMemory::ContextMemory;
  MemoryStatus Initialize() override;
  MemoryStatus Reserve(uint64_t bytes, DeviceAddress* base) override;
  MemoryStatus Unreserve(DeviceAddress base, uint64_t bytes) override;
  MemoryStatus CreateChunk(ChunkHandle* chunk) override;
  MemoryStatus ReleaseChunk(ChunkHandle chunk) override;
  MemoryStatus Map(DeviceAddress address, ChunkHandle chunk) override;
  MemoryStatus Enable(DeviceAddress address, uint64_t bytes) override;
  MemoryStatus Unmap(DeviceAddress address, uint64_t bytes) override;
  void ReleaseAll(bool context_alive) override;
  void AddPeer(CUdevice device) override;

 private:
  CUmemAllocationProp Prop() const;
  CUresult SetAccess(DeviceAddress address, uint64_t bytes, const std::vector<CUdevice>& devices) const;

  std::atomic<bool> rdma_{false};  // chunks are made for GPUDirect RDMA
  // What is held, for ReleaseAll. Only growth and trimming come here, never the fast path.
  struct Range {
    DeviceAddress base;
    uint64_t bytes;
  };
  template <typename Call>
  void WithLock(Call call) {
    std::lock_guard<std::mutex> lock(mutex_);
    call();
  }
  std::mutex mutex_;
  std::vector<Range> reserved_;
  std::vector<Range> mapped_;  // sorted by base, disjoint, neighbours merged
  std::vector<ChunkHandle> chunks_;
  std::vector<CUdevice> peers_;
};

// What a driver's answer means to the engine.
MemoryStatus ToMemoryStatus(CUresult result);

}  // namespace hotpack
