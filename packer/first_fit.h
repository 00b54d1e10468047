// First-fit: blocks in a given order, each at the lowest offset that is free for its whole residency. Unlike a skyline
// dive it uses holes below what is placed already.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "packer/stop.h"
#include "packer/timeline.h"
#include "packer/types.h"

namespace hotpack {

// Placed blocks are kept in offset order, in chunks, and scanned from below: no overlap lists, memory O(n), and time
// O(n * placed blocks below the found offset): about 25 to 40 ms for 10,000 blocks. Not thread-safe; reusable without
// allocation.
class FirstFit {
 public:
  explicit FirstFit(const Timeline& timeline);

  // order: every block once. Pinned blocks are placed before all others, wherever they stand in it. offsets: by block,
  // overwritten. Gives up and returns false when `stop` says so or as soon as the height would exceed `highest`.
  bool Place(std::span<const int32_t> order, Bytes highest, StopCheck* stop, std::vector<Offset>* offsets,
             Bytes* height);

 private:
  // Slots [begin, end) without crossing slot 0 (an arc that crosses it is two of them), offsets [offset, top).
  struct Span {
    int32_t begin;
    int32_t end;
  };
  struct Entry {
    Offset offset;
    Offset top;
    Span span;
  };
  // Entries by ascending offset. Their slots lie side by side, so that a scan compares several at once and looks at the
  // offsets only of those that are resident together with the block.
  struct Chunk {
    static constexpr int kCapacity = 128;
    int32_t begins[kCapacity] = {};
    int32_t ends[kCapacity] = {};
    Offset offsets[kCapacity];
    Offset tops[kCapacity];
    Offset max_top = 0;
    int count = 0;
  };

  std::span<const Span> SpansOf(int32_t block) const {
    return {spans_.data() + span_starts_[block], spans_.data() + span_starts_[block + 1]};
  }
  Offset LowestFree(int32_t block, StopCheck* stop) const;
  static constexpr int kGroup = 16;
  static uint32_t MeetingInGroup(const Chunk& chunk, int group, std::span<const Span> spans);
  static void Split(Chunk* lower, Chunk* upper);
  void Insert(int32_t block, Offset offset);
  void InsertEntry(const Entry& entry);
  int NewChunk();

  const Timeline& timeline_;
  std::vector<int32_t> span_starts_;  // blocks + 1 entries into spans_
  std::vector<Span> spans_;
  std::vector<int32_t> pinned_;
  std::vector<Chunk> chunks_;  // a pool; chunks_used_ of it hold something
  int chunks_used_ = 0;
  std::vector<int> chunk_order_;  // indices of used chunks, ascending offsets
};

}  // namespace hotpack
