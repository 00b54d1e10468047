// Offline placement in a fixed order, each block in the smallest gap that holds it.
#pragma once

#include <cstdint>
#include <vector>

#include "packer/types.h"

namespace hotpack {

// Places each block in turn among the earlier placed blocks that are resident together with it:
//
//   offset ▲  ├ placed ┤
//          │            gap of 3: too much   ◄── the smallest gap between them that holds the block, of equal ones the
//          │  ├ placed ┤                          lowest; if there is none, on top of them all
//          │            gap of 2: taken by a block of 2
//          │  ├ placed ┤
//
// `order`: every block once. Ignores pinned offsets, respects alignments. O(n · blocks that one meets · log).
Placement PlaceInSmallestGaps(const Instance& instance, const std::vector<int32_t>& order);

}  // namespace hotpack
