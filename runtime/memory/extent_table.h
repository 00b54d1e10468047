// Which handle each chunk of a reservation is mapped from.
//
//   chunks   │ 0 │ 1 │ 2 │ 3 │ 4 │ 5 │ 6 │ 7 │
//   extents  ├── A ──┤       ├─ B ───────────┤     2 and 3 have no pages
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/memory/device_memory.h"

namespace hotpack {

struct AddressRange {
  DeviceAddress begin = 0;
  uint64_t bytes = 0;
};

// The physical memory of one handle.
struct Extent {
  ChunkHandle handle = 0;
  uint64_t bytes = 0;
};

struct MappedExtent {
  DeviceAddress begin = 0;
  Extent extent;
};

// Needs the engine's lock, except that entries which a change of pages has set aside are read without (PageMover).
class ExtentTable {
 public:
  // Covers `bytes` from `base`, in chunks of `chunk` bytes. Nothing is mapped.
  void Open(DeviceAddress base, uint64_t bytes, uint64_t chunk);

  uint64_t size() const { return handle_.size(); }  // chunks
  uint64_t IndexOf(DeviceAddress address) const { return (address - base_) / chunk_; }
  bool IsMapped(uint64_t index) const { return handle_[index] != 0; }
  ChunkHandle HandleAt(DeviceAddress address) const { return handle_[IndexOf(address)]; }
  uint64_t FirstOf(uint64_t index) const { return first_[index]; }  // of a mapped chunk: the first of its extent
  // Returns the mapped extent there; without pages: the chunk.
  AddressRange ExtentAt(DeviceAddress address) const {
    const uint64_t c = IndexOf(address);
    if (handle_[c] == 0) return {base_ + c * chunk_, chunk_};
    return {base_ + first_[c] * chunk_, chunks_[first_[c]] * chunk_};
  }
  // Counts the chunks without pages that [begin, end) touches.
  uint64_t MissingChunks(DeviceAddress begin, DeviceAddress end) const {
    uint64_t missing = 0;
    for (uint64_t c = IndexOf(begin), last = IndexOf(end - 1); c <= last; ++c) missing += handle_[c] == 0;
    return missing;
  }
  // Returns the end of the highest chunk in [begin, end) that has pages; `begin`: none has. Requires boundaries
  // of chunks.
  DeviceAddress MappedEnd(DeviceAddress begin, DeviceAddress end) const {
    const uint64_t first = IndexOf(begin);
    uint64_t after = IndexOf(end);
    while (after > first && handle_[after - 1] == 0) --after;
    return base_ + after * chunk_;
  }
  bool AnyLarge() const { return any_large_; }  // an extent of several chunks has been mapped so far

  void Register(const MappedExtent& mapped);
  void Forget(const AddressRange& range);  // whole extents

  // Calls function(AddressRange) for each run of chunks that have pages, ascending. O(chunks).
  template <typename Function>
  void ForEachMapped(Function function) const {
    for (size_t i = 0; i < handle_.size();) {
      const size_t begin = i;
      while (i < handle_.size() && handle_[i] != 0) ++i;
      if (i > begin) function(AddressRange{base_ + begin * chunk_, (i - begin) * chunk_});
      if (i == begin) ++i;
    }
  }

  bool Consistent() const;  // an extent has one handle. O(chunks)

 private:
  DeviceAddress base_ = 0;
  uint64_t chunk_ = 1;
  bool any_large_ = false;
  std::vector<ChunkHandle> handle_;  // by chunk: of its extent; 0 if not mapped
  std::vector<uint32_t> first_;      // by mapped chunk: the first chunk of its extent
  std::vector<uint32_t> chunks_;     // by first chunk of a mapped extent: how many it has
};

}  // namespace hotpack
