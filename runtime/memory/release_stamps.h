// For each address, the releases that the next work there must come after.
//
//   address ►  ├── A: stream 2, tick 7 ──┤├─ B: all, tick 9 ─┤     ├─ C: stream 0, tick 3 ─┤
//                      └──── a block here takes {2: 7, all: 9} ────┘
#pragma once

#include <cstdint>
#include <map>
#include <memory_resource>

#include "runtime/memory/reuse.h"

namespace hotpack {

// Not thread-safe. Each operation is O(log ranges + ranges touched). Nodes come from `memory`. If it has none left, the
// release counts for all addresses: later work waits for more than necessary, and nothing is forgotten.
class ReleaseStamps {
 public:
  explicit ReleaseStamps(std::pmr::memory_resource* memory) : ranges_(memory) {}

  bool empty() const { return ranges_.empty() && everywhere_ == 0; }
  size_t size() const { return ranges_.size(); }

  // Records that a block of [begin, end) was released. Earlier releases there count no more: the block already came
  // after them.
  void Put(uint64_t begin, uint64_t end, const ReuseAfter& after) noexcept;
  // Hands out [begin, end): adds to `after` the unsettled releases that its work must come after, and forgets them.
  void Take(uint64_t begin, uint64_t end, ReuseAfter* after) noexcept;
  // Releases up to `tick` were not recorded with Put. Until they are settled, all memory comes after them.
  void PutEverywhere(uint64_t tick) noexcept {
    if (tick > settled_ && tick > everywhere_) everywhere_ = tick;
  }
  // Declares that all releases up to `tick` come before any work that is submitted from now on.
  void Settle(uint64_t tick) noexcept;

 private:
  struct Range {
    uint64_t end;
    ReuseAfter after;
  };
  std::pmr::map<uint64_t, Range> ranges_;  // by begin; disjoint
  uint64_t settled_ = 0;
  uint64_t latest_ = 0;      // no range has a later tick
  uint64_t everywhere_ = 0;  // releases up to this tick count for all addresses; 0: none
  size_t next_sweep_ = 1024;
};

}  // namespace hotpack
