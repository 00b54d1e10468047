// The memory of an envelope's places, in its zone and in fragments: which of the addresses have a live block. Blocks
// come at any offset, in any order, so what counts is whether the addresses are free, not whose turn it is.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "runtime/engine/zone_blocks.h"
#include "runtime/memory/arena.h"

namespace hotpack {

// A gap between live ranges of an area that has room for a block, at one of the gap's ends.
struct ZoneGap {
  DeviceAddress place = 0;        // of the block; 0: there is no gap
  uint64_t missing = UINT64_MAX;  // chunks of the place that have no pages
  uint64_t bytes = UINT64_MAX;    // of the gap
};

// Guarded by the engine's lock. O(1) unless noted.
class EnvelopeZone {
 public:
  explicit EnvelopeZone(ZoneBlocks* live) : live_(live) {}  // must outlive this object

  // `reservation`: of the arena. The zone and all fragments lie in it.
  void Open(const AddressRange& range, const AddressRange& reservation) {
    live_->Open(reservation);
    range_ = range;
  }
  void Close() { range_ = {}; }
  bool open() const { return range_.bytes > 0; }
  const AddressRange& range() const { return range_; }
  bool Contains(DeviceAddress address) const { return address - range_.begin < range_.bytes; }

  // Claims [begin, begin + bytes), of the zone or a fragment, for a block. Returns false, with nothing done, if a live
  // block overlaps it. `below`: perhaps the block below it; null: unknown.
  bool Claim(DeviceAddress begin, uint64_t bytes, ZoneBlock* below = nullptr);
  // Returns the end of the live range that begins below `address`; 0: there is none.
  DeviceAddress EndBelow(DeviceAddress address) const { return live_->Below(address)->end; }
  // Gives a claim up, or forgets a block. Does nothing if none begins there.
  void Release(DeviceAddress begin) {
    if (ZoneBlock* block = live_->Find(begin); block != nullptr) live_->Erase(block);
  }
  // Returns the live ranges in the zone, or those outside it, ascending. O(blocks).
  std::vector<AddressRange> Live(bool in_zone) const;
  // Returns the gap of `area` where the fewest chunks are missing; of several, the smallest. The place is a multiple of
  // `alignment`. `best`: returned if there is no better one. O(blocks + chunks).
  ZoneGap FindGap(const Arena& arena, const AddressRange& area, uint64_t bytes, uint64_t alignment,
                  ZoneGap best = {}) const;
  // As PageManager::EmptyInZone. O(chunks + blocks).
  std::vector<AddressRange> EmptyExtents(const Arena& arena, uint64_t chunks) const;

 private:
  AddressRange range_;
  ZoneBlocks* const live_;
};

}  // namespace hotpack
