// All memory of the simulated devices: the driver's allocations, known host memory, reservations and mappings.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>

#include "simgpu/checker/memory_view.h"
#include "simgpu/driver/address_space.h"

namespace simgpu {

struct Context;
struct Pool;

// Physical memory of one device. Exact: pages of 2 MiB.
struct Physical {
  uint64_t capacity = 0;
  uint64_t used = 0;
  bool Take(uint64_t bytes) {
    if (bytes > capacity - used) return false;
    used += bytes;
    return true;
  }
  void Give(uint64_t bytes) { used -= bytes; }
};

enum class AllocationKind : uint8_t { kDevice, kManaged, kHost, kRegistered };

struct Slab;

struct Allocation {
  uint64_t base = 0;
  uint64_t bytes = 0;     // as requested
  uint64_t reserved = 0;  // of the address space: bytes rounded up
  AllocationKind kind = AllocationKind::kDevice;
  Context* context = nullptr;
  int device = 0;
  Pool* pool = nullptr;              // it came from this pool
  uint64_t id = 0;                   // CU_POINTER_ATTRIBUTE_BUFFER_ID
  unsigned flags = 0;                // of host memory
  bool arena = false;                // see Region
  bool cached = false;               // freed, kept by its pool
  bool graph = false;                // allocated during a capture: ends with the graph
  Slab* slab = nullptr;              // a small one: part of a shared page
  std::shared_ptr<Backing> backing;  // device memory
  uint64_t backing_offset = 0;
  UseSet uses;
};

// A page that small allocations share.
struct Slab {
  uint64_t base = 0;
  int device = 0;
  std::map<uint64_t, uint64_t> free;  // start → bytes
  std::shared_ptr<Backing> backing;
};

// cuMemCreate.
struct Handle {
  int device = 0;
  uint64_t bytes = 0;
  unsigned handle_types = 0;  // of cuMemCreate: what it may be exported as
  int references = 1;         // from cuMemCreate, cuMemRetainAllocationHandle
  int mappings = 0;
  bool imported = false;  // the physical memory is another process's
  Backing backing;
  explicit Handle(uint64_t size) : bytes(size), backing(size) {}
};

struct Reservation {
  uint64_t bytes = 0;
  bool arena = false;
};

struct Mapping {
  uint64_t bytes = 0;
  Handle* handle = nullptr;
  uint64_t offset = 0;
  unsigned access = 0;   // CUmemAccess_flags, of the devices that have any
  uint64_t devices = 0;  // a bit for each of these devices
  Reservation* reservation = nullptr;
  UseSet uses;
};

// A range of device or host bytes that are contiguous.
struct Span {
  char* data = nullptr;  // null: device memory never written (zero), or unavailable (see ok)
  uint64_t bytes = 0;
  bool ok = false;
};

// Not thread-safe: used under the driver's lock.
class MemoryMap final : public MemoryView {
 public:
  // Allocates device memory. Blocks of at least 1 MiB have their own pages; smaller ones share pages (512 B aligned).
  // The real driver is similar. Null: out of memory. O(log allocations).
  Allocation* AllocateDevice(Physical* physical, int device, uint64_t bytes);
  // Adds address space without pages of a device (managed, host).
  Allocation* AddHost(AllocationKind kind, uint64_t base, uint64_t bytes);
  void Free(Allocation* allocation, Physical* physical);

  Allocation* FindAllocation(uint64_t address);       // containing it
  Allocation* FindAllocationStart(uint64_t address);  // starting there

  static uint64_t Rounded(uint64_t bytes);  // the address space that a block of `bytes` takes

  Reservation* FindReservation(uint64_t address, uint64_t* base);
  Mapping* FindMapping(uint64_t address, uint64_t* base);

  // Returns the bytes at `address`, as far as they are contiguous. `write`: creates them.
  Span Bytes(uint64_t address, bool write);

  Region Find(uint64_t address) override;
  uint64_t Generation() const override { return generation_; }
  void Changed() { ++generation_; }

  std::map<uint64_t, Allocation>& allocations() { return allocations_; }
  std::map<uint64_t, Reservation>& reservations() { return reservations_; }
  std::map<uint64_t, Mapping>& mappings() { return mappings_; }

 private:
  bool AllocateSmall(Physical* physical, int device, Allocation* allocation);
  bool AllocateLarge(Physical* physical, Allocation* allocation);
  void FreeSmall(Allocation* allocation, Physical* physical);
  bool TakeFromSlab(Slab* slab, Allocation* allocation);
  static uint64_t LargestHole(const Slab& slab);
  void Rank(Slab* slab, uint64_t old_hole);

  std::map<uint64_t, Allocation> allocations_;
  std::map<uint64_t, Slab> slabs_;
  // (device, largest hole, base): finds a slab for a small block.
  std::set<std::tuple<int, uint64_t, uint64_t>> holes_;
  std::map<uint64_t, Reservation> reservations_;
  std::map<uint64_t, Mapping> mappings_;
  AddressSpace space_;
  uint64_t generation_ = 1;
  uint64_t next_id_ = 1;
};

}  // namespace simgpu
