// Managed memory for blocks that the device has no room for, while the job is observed: a sample run may be larger than
// the device (Sekiyama 2018, §1). Segments of managed memory beside the arena, each with its own free ranges.
//
// Managed memory is populated where it is touched, so a segment that is larger than what it holds costs nothing but
// addresses. A block in it stays where it is until it is released: it cannot be moved.
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

// All functions but Owns need the engine's lock and make no driver call: the segments are made and given back by the
// engine, in between.
class ManagedSpill {
 public:
  explicit ManagedSpill(uint64_t limit_bytes);

  // Whether `address` lies in a segment. Lock-free, O(segments), which are none as a rule.
  bool Owns(DeviceAddress address) const;

  // A place for `bytes` (a multiple of 512) in the segments there are: the first that has one. O(segments + log
  // ranges).
  bool TryAllocate(uint64_t bytes, DeviceAddress* address);
  void Free(DeviceAddress address, uint64_t bytes);

  // The size of a new segment that holds a block of `bytes`; it counts from now on. 0: that would be more than the
  // limit.
  uint64_t BeginGrowth(uint64_t bytes);
  // The segment of BeginGrowth lies at `base`; 0: it was not to be had. False: it cannot be used and is the caller's to
  // give back (not aligned to 4 KiB).
  bool FinishGrowth(uint64_t segment, DeviceAddress base);
  // Takes out a segment without blocks: the caller waits for the device and gives it back. False: there is none.
  bool TakeEmpty(DeviceAddress* base, uint64_t* segment);
  // TakeEmpty undone (the device could not be waited for): nobody else has had the lock meanwhile, or the segment's
  // addresses were ours all the time; either way it is as before.
  void PutBack(DeviceAddress base, uint64_t segment);

  uint64_t limit() const { return limit_; }  // bytes of all segments together; 0: no managed memory
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
  const uint64_t least_;  // bytes of a segment
  uint64_t total_ = 0;    // bytes of all segments, those being made included
  uint64_t used_ = 0, peak_ = 0;
  NodePool nodes_;
  std::array<Segment, kSegments> segments_;
  // The same for readers without the lock: base / 4 KiB in the upper 37 bits, length / 4 KiB in the lower 27; 0: none.
  std::array<std::atomic<uint64_t>, kSegments> published_{};
  std::atomic<size_t> count_{0};  // segments_[0, count_) have been used
};

}  // namespace hotpack
