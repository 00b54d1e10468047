// Changes of pages: what the arena decides on, and the driver calls that carry it out, without a lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "runtime/memory/device_memory.h"
#include "runtime/memory/extent_table.h"

namespace hotpack {

// Calls of the driver that changed pages, failed ones included.
struct PageCalls {
  uint64_t create = 0, map = 0, set_access = 0;
};

// One change of pages.
struct PageWork {
  std::vector<AddressRange> take;       // free mapped extents whose pages are used elsewhere; adjacent ones are joined
  std::vector<AddressRange> take_zone;  // the same, of extents in a planned zone without live blocks
  std::vector<Extent> extents;          // available pages
  std::vector<AddressRange> targets;    // runs of chunks to map, ascending
  // Bytes after the last target that may be mapped, too, so that new extents are large. They have no pages, and are set
  // aside.
  uint64_t ahead = 0;
  uint64_t max_extent = 0;              // bytes: of new extents
  std::vector<MappedExtent> mapped;     // extents in `targets` and `ahead`, accessible
  std::vector<MappedExtent> stuck;      // the same, neither accessible nor to be unmapped: lost
  std::vector<AddressRange> not_taken;  // ranges of `take` that could not be unmapped
  // How long to wait for work that may still use the pages taken, in microseconds; UINT64_MAX: no limit.
  uint64_t max_wait = UINT64_MAX;
  bool new_instead = false;            // if that work is unfinished, new pages take the place of those taken
  bool unfinished = false;             // it was; or set before: taken for unfinished without a call
  bool release = false;                // give `extents` back to the device instead of mapping them
  uint64_t created = 0, released = 0;  // bytes
  PageCalls calls;
  MemoryStatus status = MemoryStatus::kOk;
  // The block that the work is for: it is set aside; `span` lists the parts of its span that were mapped before.
  AddressRange block;
  std::vector<AddressRange> span;
  bool small = false;  // the block is a chunk for small requests

  uint64_t TargetBytes() const {
    uint64_t bytes = 0;
    for (const AddressRange& run : targets) bytes += run.bytes;
    return bytes;
  }
};

// Carries out changes of pages. Needs no lock: it reads only entries of the table that the work has set aside. One
// change at a time.
class PageMover {
 public:
  // Both must outlive this object.
  PageMover(DeviceMemory* memory, const ExtentTable* extents) : memory_(memory), extents_(extents) {}

  // Makes the driver calls. Stops at the first error and sets work->status; everything done so far is consistent.
  void Execute(PageWork* work);

  // Counts a call that was made elsewhere.
  void CountCall() { ++driver_calls_; }
  uint64_t driver_calls() const { return driver_calls_.load(std::memory_order_relaxed); }

 private:
  void UnmapTaken(PageWork* work);
  void UnmapRanges(std::vector<AddressRange>* ranges, std::vector<AddressRange>* failed, PageWork* work);
  void MapTargets(PageWork* work);
  void PlaceAvailable(PageWork* work, std::vector<AddressRange>* gaps);
  void ReleaseSpare(uint64_t bytes, PageWork* work);
  void PlaceNew(const std::vector<AddressRange>& gaps, PageWork* work);
  void MapPlaced(PageWork* work);
  bool ReleaseOne(const Extent& extent, PageWork* work);

  DeviceMemory* const memory_;
  const ExtentTable* const extents_;
  std::atomic<uint64_t> driver_calls_{0};
};

}  // namespace hotpack
