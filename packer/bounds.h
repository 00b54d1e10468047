// Lower bounds on the height of any placement.
#pragma once

#include "packer/types.h"

namespace hotpack {

// The largest sum of sizes resident at one clock value ("load"), in bytes. O(n log n). 0 for an empty instance. The sum
// of all sizes must fit (Pack() calls the opposite kOverflow). Thread-safe.
Bytes MaxLoad(const Instance& instance);

// The best bound that is known cheaply: the larger of MaxLoad() and the top of the highest pinned block. O(n log n).
Bytes LowerBound(const Instance& instance);

}  // namespace hotpack
