// The live blocks that lie where an envelope has places: found by their address, and by their neighbours, in a number
// of steps that does not depend on how many there are.
//
//   level 1   a bit for each word below that is not 0         1       0       1
//   level 0   a bit for each 512 bytes: a block began here    0..1..  0.....  ..1.1.    the last bit below an address
//                                                                │              │ │     is that of the block below
//   blocks, in the order of addresses                            ■◄────────────►■◄►■
//
// A release leaves its bit, since most blocks come again at their address. Below clears the bits without a block that
// it meets: each was set once, so this does not change the order of its steps.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <vector>

#include "packer/block_unit.h"
#include "runtime/engine/dynamic_block.h"
#include "runtime/memory/extent_table.h"

namespace hotpack {

// A live block, or addresses that were claimed for one: block.bytes is 0 until it is handed out.
struct ZoneBlock {
  DeviceAddress begin = 0, end = 0;
  ZoneBlock* below = nullptr;  // the neighbours; at both ends it is one that stands for the ends
  ZoneBlock* above = nullptr;
  ZoneBlock* chained = nullptr;  // in its bucket
  uint32_t place = kNone;        // for the user of the class; kNone after Claim
  DynamicBlock block;

  bool handed_out() const { return block.bytes != 0; }
  bool erased() const { return begin == UINT64_MAX; }  // and not claimed again; the ends look so, too
};

// Guarded by the engine's lock. O(1) on average unless noted: a few levels of bits, and one bucket.
class ZoneBlocks {
 public:
  explicit ZoneBlocks(std::pmr::memory_resource* nodes) : nodes_(nodes) { Unlink(); }
  ~ZoneBlocks() { Close(); }
  ZoneBlocks(const ZoneBlocks&) = delete;
  ZoneBlocks& operator=(const ZoneBlocks&) = delete;

  // All blocks will lie in `addresses`, which begin at a multiple of 512. Uses a bit of the host's memory for each 512
  // bytes, which is touched only where blocks begin. Throws bad_alloc if there is none.
  void Open(const AddressRange& addresses);
  // Forgets all blocks. O(blocks).
  void Close();
  size_t size() const { return size_; }

  // Ensures that Claim can be called once. O(1) on average; throws bad_alloc if the host has no memory.
  void Prepare();
  bool prepared() const { return spare_ != nullptr; }

  // Returns the block that begins at `begin`; null: none does.
  ZoneBlock* Find(DeviceAddress begin) const {
    return size_ == 0 ? nullptr : *const_cast<ZoneBlocks*>(this)->LinkTo(begin);
  }
  // Returns where the bucket has the block that begins at `begin`, for EraseAt; there is null if none does. Requires
  // that there are blocks.
  ZoneBlock** LinkTo(DeviceAddress begin) {
    ZoneBlock** link = &buckets_[BucketOf(begin)];
    while (*link != nullptr && (*link)->begin != begin) link = &(*link)->chained;
    return link;
  }
  // Returns the highest block that begins below `address`; IsEnd: there is none. An end has the end 0, and begins above
  // all addresses.
  ZoneBlock* Below(DeviceAddress address) const;  // forgets bits without a block
  const ZoneBlock* lowest() const { return ends_.above; }
  ZoneBlock* lowest() { return ends_.above; }
  const ZoneBlock* highest() const { return ends_.below; }
  bool IsEnd(const ZoneBlock* block) const { return block == &ends_; }

  // Returns whether `block`, live or released, is what Below(address) returns: a guess costs less than a search.
  static bool IsBelow(const ZoneBlock* block, DeviceAddress address) {
    return block->begin < address && block->above->begin >= address;
  }

  // Claims [begin, end) for a block. `below`: as Below(begin) returns it. Requires prepared(). Returns null, with
  // nothing done, if a live block overlaps the range. The block's other fields have any value, and are to be set.
  ZoneBlock* Claim(ZoneBlock* below, DeviceAddress begin, DeviceAddress end) {
    if (below->end > begin) return nullptr;
    if (below->above->begin < end) return nullptr;
    ZoneBlock* const block = spare_;
    spare_ = block->chained;
    block->begin = begin;
    block->end = end;
    block->place = kNone;
    block->below = below;
    block->above = below->above;
    block->above->below = block;
    below->above = block;
    ZoneBlock** const bucket = &buckets_[BucketOf(begin)];
    block->chained = *bucket;
    *bucket = block;
    ++size_;
    const uint64_t index = IndexOf(begin);
    if ((bits_[0][index / 64] & uint64_t{1} << index % 64) == 0) [[unlikely]]
      SetBit(index);
    return block;
  }
  void Erase(ZoneBlock* block) { EraseAt(LinkTo(block->begin)); }
  void EraseAt(ZoneBlock** link) {
    ZoneBlock* const block = *link;
    *link = block->chained;
    block->below->above = block->above;
    block->above->below = block->below;
    --size_;
    block->begin = UINT64_MAX;  // below no address
    block->chained = spare_;
    spare_ = block;
  }

 private:
  static constexpr int kMaxLevels = 6;  // of 64 each: all arenas have less than 2^32 units

  void Unlink() {
    ends_.below = ends_.above = &ends_;
    ends_.begin = UINT64_MAX;
    ends_.end = 0;
  }
  size_t BucketOf(DeviceAddress begin) const { return (begin / kBlockUnit * 0x9E3779B97F4A7C15u) >> bucket_shift_; }
  uint64_t IndexOf(DeviceAddress begin) const { return (begin - base_) / kBlockUnit; }
  void SetBit(uint64_t index) {
    for (int level = 0; level < levels_; ++level, index /= 64) {
      uint64_t& word = bits_[level][index / 64];
      const uint64_t before = word;
      word |= uint64_t{1} << index % 64;
      if (before != 0) return;
    }
  }
  void ClearBit(uint64_t index) const {
    for (int level = 0; level < levels_; ++level, index /= 64) {
      uint64_t& word = bits_[level][index / 64];
      word &= ~(uint64_t{1} << index % 64);
      if (word != 0) return;
    }
  }
  void GrowBuckets();

  std::pmr::memory_resource* const nodes_;
  DeviceAddress base_ = 0;
  uint64_t addresses_ = 0;  // bytes
  size_t size_ = 0;
  ZoneBlock* spare_ = nullptr;  // by `chained`
  std::vector<ZoneBlock*> buckets_;
  int bucket_shift_ = 63;
  int levels_ = 0;
  uint64_t* bits_[kMaxLevels] = {};  // in one mapping, level 0 first
  size_t mapped_bytes_ = 0;
  ZoneBlock ends_;
};

inline ZoneBlock* ZoneBlocks::Below(DeviceAddress address) const {
  auto* const ends = const_cast<ZoneBlock*>(&ends_);
  if (size_ == 0 || address <= base_) return ends;
  if (address - base_ > addresses_) return ends->below;
  uint64_t index = (address - base_ + kBlockUnit - 1) / kBlockUnit;  // the first bit that does not count
  for (int level = 0; level < levels_;) {
    const uint64_t below = bits_[level][index / 64] & ((uint64_t{1} << index % 64) - 1);
    if (below == 0) {
      ++level;
      index /= 64;
      continue;
    }
    index = index / 64 * 64 + static_cast<uint64_t>(std::bit_width(below)) - 1;
    for (; level > 0; --level) {
      index = index * 64 + static_cast<uint64_t>(std::bit_width(bits_[level - 1][index])) - 1;
    }
    if (ZoneBlock* const block = Find(base_ + index * kBlockUnit); block != nullptr) return block;
    ClearBit(index);  // and goes on below it
  }
  return ends;
}

}  // namespace hotpack
