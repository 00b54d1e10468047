// Which launches use which block: first use, last use, and the idle gaps between them, from a recording with launches
// (Notes::launches). A planner of swaps or recomputation needs these first.
//
//   block   |allocated      use        use . . . . . . . . . use       released|
//   clock   ├───────────────●──────────●─────────────────────●─────────────────┤
//                           first                 a gap      last
#pragma once

#include <cstdint>
#include <vector>

#include "profiler/event.h"
#include "profiler/notes.h"

namespace hotpack {

inline constexpr uint64_t kNotReleased = UINT64_MAX;

// One block of the recording. Clock values count the allocations and releases before; positions are those of events.
struct BlockUses {
  uint64_t id = 0;
  uint64_t bytes = 0;
  uint64_t allocated = 0;            // position of its allocation
  uint64_t released = kNotReleased;  // ... of its release
  uint64_t first = 0;                // Uses::launches[first, first + count): the launches that name it, ascending
  uint64_t count = 0;                // 0: no launch names it
};

// The gap between two consecutive uses of a block.
struct IdleGap {
  uint64_t block = 0;         // index in Uses::blocks
  uint64_t begin_launch = 0;  // the use before the gap, an index into Notes::launches
  uint64_t end_launch = 0;    // the use after it
  uint64_t begin = 0;         // clock of the use before
  uint64_t end = 0;           // ... and after
  uint64_t bytes = 0;         // of the block

  // Bytes times clock ticks: what the gap would free. At most UINT64_MAX.
  uint64_t Area() const;
};

struct Uses {
  std::vector<BlockUses> blocks;   // in the order of their allocations
  std::vector<uint64_t> launches;  // indices into Notes::launches
  std::vector<uint64_t> clock;     // of each launch

  // Positions (Launch::position) of a block's first and last use. The block must have a use.
  uint64_t FirstUse(const BlockUses& block, const Notes& notes) const {
    return notes.launches[launches[block.first]].position;
  }
  uint64_t LastUse(const BlockUses& block, const Notes& notes) const {
    return notes.launches[launches[block.first + block.count - 1]].position;
  }
};

// Finds all uses. Omits ids of launches that are no block of `trace`. O(events + launches + named blocks).
Uses FindUses(const Trace& trace, const Notes& notes);

// Returns the gaps of one block, in order. Omits gaps without a clock tick. O(uses).
std::vector<IdleGap> GapsOf(const Uses& uses, uint64_t block);

// Returns the `most` gaps of largest area, largest first; of equal ones, the earliest first. O(uses log most).
std::vector<IdleGap> LargestGaps(const Uses& uses, size_t most);

}  // namespace hotpack
