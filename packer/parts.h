// What of an instance may be packed alone.
#pragma once

#include <cstdint>
#include <vector>

#include "packer/timeline.h"
#include "packer/types.h"

namespace hotpack {

//    ┌────────────────────────────┐         floor: resident all the time
//    ├──────┐    ┌───┐    ┌───────┤         parts: what is left falls apart at the
//    │  1   │    │ 2 │    │   3   │         clock values at which nothing else is live
//    └──────┴────┴───┴────┴───────┘
//      part 1    part 2    part 3    (on the floor)
//
// A lowest placement is: the floor's blocks one on another from offset 0, and on them a lowest placement of each part.
struct Split {
  std::vector<int32_t> floor;               // blocks, from the bottom up
  Bytes floor_height = 0;                   // sum of their sizes
  std::vector<std::vector<int32_t>> parts;  // every other block is in one of them

  bool is_trivial() const { return floor.empty() && parts.size() <= 1; }
};

// A block that is resident at all slots where any is belongs to the floor, provided that nothing is pinned and its size
// keeps everybody's alignment: any placement may be changed so that it lies at the bottom, by moving up what was under
// it. Parts are connected by being resident at slots without a gap, or by blocks with several arcs. Not recursive: a
// part may have a floor of its own. O((n + slots) log n).
Split SplitInstance(const Timeline& timeline);

// The given blocks of the instance, in that order.
Instance Subset(const Instance& instance, const std::vector<int32_t>& blocks);

}  // namespace hotpack
