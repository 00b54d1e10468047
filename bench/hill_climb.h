// TVM's hill climbing memory planner.
#pragma once

#include "packer/types.h"

namespace hotpack::bench {

// Returns the placement of TVM's unified static memory planner (src/tir/usmp/algo/hill_climb.cc). Deterministic. O(500
// · (first fit + pairs of one block's neighbours)).
//  1. Places blocks in the order of decreasing size, each at the lowest free offset.
//  2. 500 times swaps two blocks of the order and places all blocks again.
//  3. The two are drawn for a block that ends at the top: one in conflict with it and before it in the order, and one
//     in conflict with the first and before it.
//  4. Keeps a lower height. Keeps a higher one with a probability that falls with the attempts. Returns the last one
//     kept.
Placement PackByHillClimb(const Instance& instance);

}  // namespace hotpack::bench
