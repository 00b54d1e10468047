// Lower bounds on the height of any placement.
#pragma once

#include "packer/types.h"

namespace hotpack {

// The largest sum of sizes resident at one clock value ("load"). O(n log n). 0 for an empty instance.
Bytes MaxLoad(const Instance& instance);

}  // namespace hotpack
