// First-fit: places blocks in a given order, each at the lowest offset that is free for its whole residency. Unlike a
// skyline dive, it uses gaps below blocks that are already placed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "packer/stop.h"
#include "packer/timeline.h"
#include "packer/types.h"

namespace hotpack {

// Placed blocks are stored in offset order, in chunks, and scanned from below, without overlap lists. Memory O(n). Time
// O(n * placed blocks below the found offset): about 25 to 40 ms for 10,000 blocks. Not thread-safe; reusable without
// allocation.
class FirstFit {
 public:
  explicit FirstFit(const Timeline& timeline);

  // Places all blocks. `order`: every block once. Pinned blocks are placed before all others, wherever they stand in
  // it. `offsets`: by block, overwritten. Returns false if `stop` fires, or as soon as the height would exceed
  // `highest`.
  bool Place(std::span<const int32_t> order, Bytes highest, StopCheck* stop, std::vector<Offset>* offsets,
             Bytes* height);

 private:
  // Slots [begin, end) that do not cross slot 0 (an arc that crosses it becomes two spans).
  struct Span {
    int32_t begin;
    int32_t end;
  };
  struct Entry {
    Offset offset;
    Offset top;
    Span span;
  };
  // Entries by ascending offset. Their slots are stored side by side, so that a scan compares several at once. It reads
  // offsets only of entries that are resident together with the block.
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
  std::vector<Chunk> chunks_;  // a pool; chunks_used_ of them are in use
  int chunks_used_ = 0;
  std::vector<int> chunk_order_;  // indices of used chunks, ascending offsets
};

}  // namespace hotpack
