// The chunks of an envelope's zone that surely have their pages: a bit each. So the usual request need not look for
// extents.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "runtime/memory/extent_table.h"

namespace hotpack {

// Guarded by the engine's lock. O(chunks / 64) unless noted.
class ReadyChunks {
 public:
  // Of this zone, none is. `zone` consists of chunks of `chunk` bytes, a power of two. O(chunks).
  void Open(const AddressRange& zone, uint64_t chunk) {
    begin_ = zone.begin;
    shift_ = std::countr_zero(chunk);
    bits_.assign(((zone.bytes >> shift_) + 63) / 64, 0);
  }
  // Returns whether all chunks of [begin, end) are. It must lie in the zone, and not be empty.
  bool Have(DeviceAddress begin, DeviceAddress end) const {
    const uint64_t first = (begin - begin_) >> shift_, last = (end - 1 - begin_) >> shift_;
    if (first / 64 != last / 64) [[unlikely]]
      return HaveLong(first, last);
    return (~bits_[first / 64] & (~uint64_t{0} << first % 64) & (~uint64_t{0} >> (63 - last % 64))) == 0;
  }
  // All chunks of the range are from now on, or none of them is. O(chunks of the range).
  void Set(const AddressRange& range, bool ready) {
    const uint64_t last = (range.begin + range.bytes - 1 - begin_) >> shift_;
    for (uint64_t i = (range.begin - begin_) >> shift_; i <= last; ++i) {
      const uint64_t bit = uint64_t{1} << i % 64;
      bits_[i / 64] = ready ? bits_[i / 64] | bit : bits_[i / 64] & ~bit;
    }
  }

 private:
  [[gnu::noinline]] bool HaveLong(uint64_t first, uint64_t last) const {
    if (~bits_[first / 64] >> first % 64 != 0 || ~bits_[last / 64] << (63 - last % 64) != 0) return false;
    for (uint64_t word = first / 64 + 1; word < last / 64; ++word) {
      if (~bits_[word] != 0) return false;
    }
    return true;
  }

  DeviceAddress begin_ = 0;
  int shift_ = 0;
  std::vector<uint64_t> bits_;
};

}  // namespace hotpack
