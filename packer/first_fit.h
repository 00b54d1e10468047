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
// O(n * placed blocks below the found offset): about 25 ms for 10,000 blocks. Not thread-safe; reusable without
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
  struct Chunk {
    static constexpr int kCapacity = 128;
    Offset max_top = 0;
    int count = 0;
    Entry entries[kCapacity];  // ascending offset
  };

  std::span<const Span> SpansOf(int32_t block) const {
    return {spans_.data() + span_starts_[block], spans_.data() + span_starts_[block + 1]};
  }
  Offset LowestFree(int32_t block, StopCheck* stop) const;
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
