// Which launches use which block: first use, last use, and the idle gaps between, out of a recording with launches
// (Notes::launches). What a planner of swaps or recomputation asks first.
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

// One block of the recording. Clock values are the number of allocations and releases before; positions, of events.
struct BlockUses {
  uint64_t id = 0;
  uint64_t bytes = 0;
  uint64_t allocated = 0;            // position of its allocation
  uint64_t released = kNotReleased;  // ... of its release
  uint64_t first = 0;                // Uses::launches[first, first + count): the launches that name it, ascending
  uint64_t count = 0;                // 0: none does
};

// Between two uses of a block that follow each other.
struct IdleGap {
  uint64_t block = 0;         // index in Uses::blocks
  uint64_t begin_launch = 0;  // the use before it, an index into Notes::launches
  uint64_t end_launch = 0;    // the use after it
  uint64_t begin = 0;         // clock of the use before
  uint64_t end = 0;           // ... and after
  uint64_t bytes = 0;         // of the block

  // Bytes times ticks of the clock: what would be free in the gap. At most UINT64_MAX.
  uint64_t Area() const;
};

struct Uses {
  std::vector<BlockUses> blocks;   // in the order of their allocations
  std::vector<uint64_t> launches;  // indexes into Notes::launches
  std::vector<uint64_t> clock;     // of each launch

  // Positions (Launch::position) of a block's first and last use. The block has one.
  uint64_t FirstUse(const BlockUses& block, const Notes& notes) const {
    return notes.launches[launches[block.first]].position;
  }
  uint64_t LastUse(const BlockUses& block, const Notes& notes) const {
    return notes.launches[launches[block.first + block.count - 1]].position;
  }
};

// O(events + launches + what they name). Ids of launches that are no block of `trace` are left out.
Uses FindUses(const Trace& trace, const Notes& notes);

// The gaps of one block, in order; those that no tick of the clock lies in are left out. O(uses).
std::vector<IdleGap> GapsOf(const Uses& uses, uint64_t block);

// The `most` gaps of largest area, largest first; of equal ones the one that begins first. O(uses log most).
std::vector<IdleGap> LargestGaps(const Uses& uses, size_t most);

}  // namespace hotpack
