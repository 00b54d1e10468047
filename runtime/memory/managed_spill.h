// Managed memory for blocks that do not fit the device while the job is observed: a sample run may be larger than the
// device (Sekiyama 2018, §1). It consists of segments outside the arena, each with its own free ranges.
//
// Managed memory is populated on first touch. So a segment larger than its blocks costs only addresses. A block in a
// segment cannot be moved: it stays until it is released.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <memory_resource>

#include "runtime/base/node_pool.h"
#include "runtime/memory/device_memory.h"
#include "runtime/memory/free_ranges.h"

namespace hotpack {

// All functions except Owns need the engine's lock. None makes a driver call: the engine allocates and frees the
// segments between these calls.
class ManagedSpill {
 public:
  explicit ManagedSpill(uint64_t limit_bytes);

  // Returns whether `address` lies in a segment. Lock-free, O(segments); usually there are none.
  bool Owns(DeviceAddress address) const;

  // Places `bytes` (a multiple of 512) in the first existing segment that has space. O(segments + log ranges).
  bool TryAllocate(uint64_t bytes, DeviceAddress* address);
  void Free(DeviceAddress address, uint64_t bytes);

  // Returns the size of a new segment that holds a block of `bytes`, and counts it from now on. Returns 0 if that would
  // exceed the limit.
  uint64_t BeginGrowth(uint64_t bytes);
  // Adds the segment of BeginGrowth at `base`; 0: the driver refused the segment. Returns false if it cannot be used
  // (not aligned to 4 KiB, or the table is full): the caller must free it.
  bool FinishGrowth(uint64_t segment, DeviceAddress base);
  // Removes a segment without blocks: the caller waits for the device and frees it. Returns false if there is none.
  bool TakeEmpty(DeviceAddress* base, uint64_t* segment);
  // Undoes TakeEmpty, if the device could not be waited for. The state is as before, even if other threads had the lock
  // meanwhile: the segment's addresses were ours all the time.
  void PutBack(DeviceAddress base, uint64_t segment);

  uint64_t limit() const { return limit_; }  // maximum bytes of all segments together; 0: no managed memory
  uint64_t used() const { return used_; }    // bytes of blocks
  uint64_t peak() const { return peak_; }

 private:
  static constexpr size_t kSegments = 256;
  static constexpr uint64_t kPage = 4096;
  struct Segment {
    DeviceAddress base = 0;  // 0: none
    uint64_t bytes = 0;
    std::unique_ptr<FreeRanges> free;
  };
  void Publish(size_t index);

  const uint64_t limit_;
  const uint64_t least_;  // minimum bytes of a segment
  uint64_t total_ = 0;    // bytes of all segments, including those being allocated
  uint64_t used_ = 0, peak_ = 0;
  NodePool nodes_;
  std::array<Segment, kSegments> segments_;
  // The same for readers without the lock: base / 4 KiB in the upper 37 bits, length / 4 KiB in the lower 27; 0: none.
  std::array<std::atomic<uint64_t>, kSegments> published_{};
  std::atomic<size_t> count_{0};  // segments_[0, count_) have been used
};

}  // namespace hotpack
