// DeviceMemory on the CUDA driver's virtual memory management (cuMemAddressReserve, cuMemCreate, cuMemMap), and its
// common part with plain_device_memory.h.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "runtime/memory/cuda_driver.h"
#include "runtime/memory/device_memory.h"

namespace hotpack {

// Waits until all work submitted to `context` (null: the current one) has finished, for at most about so many
// microseconds (kNoLimit: without end). Provided by the code that sees the captures (preload/streams/stream_order.h).
using SynchronizeContext = DeviceWait (*)(CUcontext context, uint64_t microseconds);
inline constexpr uint64_t kNoLimit = UINT64_MAX;

// Memory of one context's device. Thread-safe. Holds no lock across a driver call. While it runs, every function
// - makes its context current if the calling thread has another one, or none (frees come from foreign threads);
// - sets the thread's stream capture mode to relaxed, so that growth during a capture does not break that capture.
class ContextMemory : public DeviceMemory {
 public:
  // `driver` must outlive this object. Makes no driver call.
  ContextMemory(const CudaDriver* driver, CUcontext context, SynchronizeContext synchronize)
      : driver_(driver), context_(context), synchronize_(synchronize) {}

  // Queries the context's device; the context must be current. Call once, before any other function. kNotSupported:
  // this kind of memory is not available here, and all other functions return the same.
  virtual MemoryStatus Initialize() = 0;
  // Gives all held memory back to the driver, when the context ends. No work may be using it. No other function may be
  // called afterwards. Ignores errors. `context_alive`: the context can still be made current.
  virtual void ReleaseAll(bool context_alive) = 0;
  // Limits the bytes taken from the device from now on; memory already held stays. UINT64_MAX: no limit. Affects only
  // memory that is taken piece by piece.
  void SetLimit(uint64_t bytes) { limit_.store(bytes, std::memory_order_relaxed); }
  uint64_t limit() const { return limit_.load(std::memory_order_relaxed); }

  // `capturing`: returns whether a stream is known to be capturing, without a driver call, on any thread. null: never.
  // Call before the memory is shared with other threads.
  void SetCapturing(bool (*capturing)()) { capturing_ = capturing; }

  // Lets another device use this memory: what is mapped now and later. Does nothing if the driver manages access
  // itself. Ignores errors: the driver then refuses the device's accesses.
  virtual void AddPeer(CUdevice) {}
  // Returns whether `device` can copy from and to this memory by any copy function. The driver sees to it for memory of
  // cuMemAlloc.
  virtual bool CopiesReach(CUdevice) { return true; }

  uint64_t ChunkBytes() const override { return chunk_bytes_; }
  uint64_t TotalBytes() const override { return total_bytes_; }
  bool Synchronize() override;
  DeviceWait SynchronizeWithin(uint64_t microseconds) override;
  bool MayWait() const override { return capturing_ == nullptr || !capturing_(); }
  MemoryStatus AllocateManaged(uint64_t bytes, DeviceAddress* address) override;
  MemoryStatus FreeManaged(DeviceAddress address) override;
  MemoryStatus Fill(DeviceAddress address, uint64_t bytes, uint8_t value) override;
  MemoryStatus Read(DeviceAddress address, uint64_t bytes, void* to) override;

  CUcontext context() const { return context_; }
  CUdevice device() const { return device_; }
  // Driver calls made for the DeviceMemory functions (one each; context switches do not count).
  uint64_t DriverCalls() const { return driver_calls_.load(std::memory_order_relaxed); }

 protected:
  class Scope;
  MemoryStatus Count(CUresult result);
  // Makes the driver call call() -> CUresult in the context, and counts it. Without the context it makes none, because
  // the driver would take another one's memory or stream. Returns the reason then.
  template <typename Call>
  MemoryStatus InContext(Call call);

  const CudaDriver* const driver_;
  const CUcontext context_;
  const SynchronizeContext synchronize_;
  bool (*capturing_)() = nullptr;
  CUdevice device_ = 0;
  bool supported_ = false;
  uint64_t chunk_bytes_ = 2u << 20;
  uint64_t total_bytes_ = 0;

 private:
  CUstream OwnStream();
  std::atomic<uint64_t> limit_{UINT64_MAX};

  std::atomic<uint64_t> driver_calls_{0};
  std::atomic<CUstream> own_stream_{nullptr};  // of Fill and Read; destroyed with the context
};

// Makes the context current and the thread's capture mode relaxed while it lives. cuMemCreate, cuMemAlloc and similar
// calls count as "potentially unsafe" while a stream is capturing in global mode (cuda.h,
// cuThreadExchangeStreamCaptureMode).
class ContextMemory::Scope {
 public:
  explicit Scope(const ContextMemory& memory);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  explicit operator bool() const { return status_ == MemoryStatus::kOk; }  // whether the context is current
  MemoryStatus status() const { return status_; }  // kFailed: it is not; kDeinitialized: the driver is shutting down

 private:
  const CudaDriver* const driver_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
  MemoryStatus status_ = MemoryStatus::kOk;
  bool pushed_ = false;
  bool exchanged_ = false;
};

template <typename Call>
MemoryStatus ContextMemory::InContext(Call call) {
  Scope scope(*this);
  return scope ? Count(call()) : scope.status();
}

// Chunks have the driver's minimum granularity, at least 64 KiB. GPUDirect RDMA can use them where the device supports
// that for such memory. cuCtxDestroy does not release memory of cuMemCreate (cuda.h), so ReleaseAll is needed.
class CudaDeviceMemory : public ContextMemory {
 public:
  CudaDeviceMemory(const CudaDriver* driver, CUcontext context, SynchronizeContext synchronize,
                   const ExtentLimits& extents = {})
      : ContextMemory(driver, context, synchronize), extents_(extents) {}
  MemoryStatus Initialize() override;
  MemoryStatus Reserve(uint64_t bytes, DeviceAddress* base) override;
  MemoryStatus Unreserve(DeviceAddress base, uint64_t bytes) override;
  MemoryStatus CreateChunk(uint64_t bytes, ChunkHandle* chunk) override;
  MemoryStatus ReleaseChunk(ChunkHandle chunk) override;
  uint64_t AvailableBytes() override;
  ExtentLimits Extents() const override { return extents_; }
  MemoryStatus Map(DeviceAddress address, uint64_t bytes, ChunkHandle chunk) override;
  MemoryStatus Enable(DeviceAddress address, uint64_t bytes) override;
  MemoryStatus Unmap(DeviceAddress address, uint64_t bytes) override;
  void ReleaseAll(bool context_alive) override;
  void AddPeer(CUdevice device) override;
  bool CopiesReach(CUdevice device) override;

 private:
  CUmemAllocationProp Prop() const;
  CUresult SetAccess(DeviceAddress address, uint64_t bytes, const std::vector<CUdevice>& devices) const;

  const ExtentLimits extents_;
  std::atomic<bool> rdma_{false};  // chunks are created for GPUDirect RDMA
  // Chunks are created for handles that are file descriptors. Where the driver answers without a hook between,
  // NCCL retains a chunk's handle and exports it. It fails if the export does (NCCL's source: src/transport/p2p.cc).
  std::atomic<bool> shareable_{false};
  // Memory held, for ReleaseAll. Used only by growth and trimming, never by the fast path.
  struct Range {
    DeviceAddress base;
    uint64_t bytes;
  };
  static std::vector<Range> Stretches(const std::vector<Range>& mapped);
  template <typename Call>
  void WithLock(Call call) {
    std::lock_guard<std::mutex> lock(mutex_);
    call();
  }
  std::mutex mutex_;
  std::vector<Range> reserved_;
  struct Chunk {
    ChunkHandle handle;
    uint64_t bytes;
  };
  std::vector<Range> mapped_;  // each mapping, sorted by base
  std::vector<Chunk> chunks_;
  uint64_t held_ = 0;  // bytes of chunks_
  std::vector<CUdevice> peers_;
};

// Translates a driver's result for the engine.
MemoryStatus ToMemoryStatus(CUresult result);

}  // namespace hotpack
