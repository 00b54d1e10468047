// The memory of an envelope's places, in its zone and in fragments: which of the addresses have a live block. Blocks
// come at any offset, in any order, so what counts is whether the addresses are free, not whose turn it is.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory_resource>
#include <vector>

#include "runtime/memory/arena.h"

namespace hotpack {

// Guarded by the engine's lock. O(log blocks) unless noted.
class EnvelopeZone {
 public:
  explicit EnvelopeZone(std::pmr::memory_resource* nodes) : live_(nodes) {}

  void Open(const AddressRange& range) { range_ = range; }
  void Close();
  bool open() const { return range_.bytes > 0; }
  const AddressRange& range() const { return range_; }
  bool Contains(DeviceAddress address) const { return address - range_.begin < range_.bytes; }

  // Claims [begin, begin + bytes), of the zone or a fragment, for a block. Returns false, with nothing done, if a live
  // block overlaps it.
  bool Claim(DeviceAddress begin, uint64_t bytes);
  void Release(DeviceAddress begin) { live_.erase(begin); }
  // Returns the live ranges in the zone, or those outside it, ascending. O(blocks).
  std::vector<AddressRange> Live(bool in_zone) const;
  // Finds the smallest gap of `area` between live ranges that has room for `bytes` at one of its ends and a multiple of
  // `alignment`. `with_pages`: where pages are. *gap: its size. Returns 0 if none is smaller than the *gap given.
  // O(blocks + chunks).
  DeviceAddress FindGap(const Arena& arena, const AddressRange& area, uint64_t bytes, uint64_t alignment, uint64_t* gap,
                        bool with_pages = true) const;
  // As PageManager::EmptyInZone. O(chunks + blocks).
  std::vector<AddressRange> EmptyExtents(const Arena& arena, uint64_t chunks) const;

 private:
  AddressRange range_;
  std::pmr::map<DeviceAddress, uint64_t> live_;  // begin → bytes
};

}  // namespace hotpack
