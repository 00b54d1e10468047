// Splits an instance into parts that can be packed separately.
#pragma once

#include <cstdint>
#include <vector>

#include "packer/timeline.h"
#include "packer/types.h"

namespace hotpack {

//    ┌────────────────────────────┐         floor: resident all the time
//    ├──────┐    ┌───┐    ┌───────┤         parts: the other blocks, separated at the clock
//    │  1   │    │ 2 │    │   3   │         values at which none of them is live
//    └──────┴────┴───┴────┴───────┘
//      part 1    part 2    part 3    (on the floor)
//
// A lowest placement consists of the floor's blocks stacked from offset 0, and on them a lowest placement of each part.
struct Split {
  std::vector<int32_t> floor;               // blocks, from the bottom up
  Bytes floor_height = 0;                   // sum of their sizes
  std::vector<std::vector<int32_t>> parts;  // every other block is in exactly one of them

  bool is_trivial() const { return floor.empty() && parts.size() <= 1; }
};

// Splits an instance. The floor has the blocks that are resident at every slot where any block is. Conditions: no block
// is pinned, and the block's size preserves the alignment of all others. Reason: any placement may be changed so that
// the block lies at the bottom, by moving up what was under it. Blocks belong to one part if they are connected by
// slots without a gap, or by blocks with several arcs. Not recursive: a part may have a floor of its own. O((n + slots)
// log n).
Split SplitInstance(const Timeline& timeline);

// Returns the given blocks of the instance, in that order.
Instance Subset(const Instance& instance, const std::vector<int32_t>& blocks);

}  // namespace hotpack
