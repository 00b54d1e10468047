// TVM's hill climbing memory planner.
#pragma once

#include "packer/types.h"

namespace hotpack::bench {

// After TVM's unified static memory planner (src/tir/usmp/algo/hill_climb.cc): blocks in the order of decreasing size,
// each at the lowest offset that is free; then 500 times two blocks of the order change places and all is placed anew.
// The two are drawn below a block that ends at the top: one that it meets and that comes before it in the order, and
// one that meets such a one and comes before that. A lower height is kept, a higher one with a probability that falls
// with the attempts; the last one kept is the result. Deterministic. O(500 · (first fit + pairs of one block's
// neighbours)).
Placement PackByHillClimb(const Instance& instance);

}  // namespace hotpack::bench
