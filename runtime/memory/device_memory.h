// The interface between the runtime and the device: virtual address ranges and physical chunks of one context.
#pragma once

#include <cstdint>

namespace hotpack {

using DeviceAddress = uint64_t;
using ChunkHandle = uint64_t;  // physical memory of one or several chunks; 0: none

// How large a new handle may be. The defaults are for a real device (arena.h, rules 4 and 5).
struct ExtentLimits {
  uint64_t bytes = uint64_t{128} << 20;  // a power of two; less than ChunkBytes() means ChunkBytes()
  uint64_t share = 256;                  // 1/share of the memory held, at least 1
};

enum class MemoryStatus : uint8_t {
  kOk,
  kOutOfMemory,    // the device has no physical memory left
  kNotSupported,   // no virtual memory management on this device
  kDeinitialized,  // the driver is shutting down
  kFailed,         // any other driver error
};

// How a wait for the device ended.
enum class DeviceWait : uint8_t {
  kDone,        // all work submitted before is done
  kNotNow,      // nothing may be waited for: a stream is capturing, or the driver failed
  kUnfinished,  // the time was up
};

// Thread-safe: any thread may call any function. The engine never holds a lock across a call. Each call counts as one
// driver call. Implementations: CudaDeviceMemory and PlainDeviceMemory (the driver), FakeDeviceMemory in tests.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  virtual uint64_t ChunkBytes() const = 0;  // size and alignment of a chunk; a power of two, at least 64 KiB
  virtual uint64_t TotalBytes() const = 0;  // available physical memory
  virtual ExtentLimits Extents() const { return {0}; }  // by default each chunk has a handle
  // True: the whole reservation has memory from the start and keeps it. Chunks then cost and save nothing.
  virtual bool Fixed() const { return false; }
  virtual MemoryStatus Reserve(uint64_t bytes, DeviceAddress* base) = 0;
  virtual MemoryStatus Unreserve(DeviceAddress base, uint64_t bytes) = 0;
  // `bytes`: a multiple of ChunkBytes().
  virtual MemoryStatus CreateChunk(uint64_t bytes, ChunkHandle* chunk) = 0;
  virtual MemoryStatus ReleaseChunk(ChunkHandle chunk) = 0;
  // Maps all `bytes` of the handle at `address` (a multiple of ChunkBytes()). Not accessible before Enable.
  virtual MemoryStatus Map(DeviceAddress address, uint64_t bytes, ChunkHandle chunk) = 0;
  // Makes [address, address + bytes) readable and writable by the device. Must consist of whole mappings.
  virtual MemoryStatus Enable(DeviceAddress address, uint64_t bytes) = 0;
  // Unmaps [address, address + bytes). Must consist of whole mappings (cuda.h, cuMemUnmap: no part of one), and no work
  // may be using it.
  virtual MemoryStatus Unmap(DeviceAddress address, uint64_t bytes) = 0;
  // Waits until all work submitted to the context so far has finished. Returns false if that is not possible now (a
  // stream is capturing).
  virtual bool Synchronize() = 0;

  // The same, for at most about so many microseconds. By default they have no limit.
  virtual DeviceWait SynchronizeWithin(uint64_t) { return Synchronize() ? DeviceWait::kDone : DeviceWait::kNotNow; }

  // Returns false while Synchronize could only fail, because a stream is known to be capturing. Makes no driver call.
  virtual bool MayWait() const { return true; }

  // Returns the bytes that CreateChunk could give now, about; UINT64_MAX: unknown.
  virtual uint64_t AvailableBytes() { return UINT64_MAX; }

  // The functions below are optional, in addition to the arena. Each returns kNotSupported if it is not available.

  // Allocates `bytes` of managed memory, which the device can access even if it has no space for it.
  virtual MemoryStatus AllocateManaged(uint64_t bytes, DeviceAddress* address);
  virtual MemoryStatus FreeManaged(DeviceAddress address);
  // Fill writes `value` over [address, address + bytes); Read copies it to the host. Both are done on return. They use
  // a stream of their own that waits for no other: allowed while a stream is capturing.
  virtual MemoryStatus Fill(DeviceAddress address, uint64_t bytes, uint8_t value);
  virtual MemoryStatus Read(DeviceAddress address, uint64_t bytes, void* to);
};

inline MemoryStatus DeviceMemory::AllocateManaged(uint64_t, DeviceAddress*) { return MemoryStatus::kNotSupported; }
inline MemoryStatus DeviceMemory::FreeManaged(DeviceAddress) { return MemoryStatus::kNotSupported; }
inline MemoryStatus DeviceMemory::Fill(DeviceAddress, uint64_t, uint8_t) { return MemoryStatus::kNotSupported; }
inline MemoryStatus DeviceMemory::Read(DeviceAddress, uint64_t, void*) { return MemoryStatus::kNotSupported; }

}  // namespace hotpack
