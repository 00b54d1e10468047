// Checks a placement against its instance. Shares no code with the solvers.
#pragma once

#include <string>

#include "packer/types.h"

namespace hotpack {

// Returns an empty string if the placement is valid; otherwise one line that names the first fault. O(n log n) for a
// valid placement. Valid means:
// - every block has a nonnegative, aligned offset, its pinned one if pinned;
// - no two blocks with overlapping residency share an address;
// - `height` is the exact top.
std::string Validate(const Instance& instance, const Placement& placement);

}  // namespace hotpack
