// Checks a placement against its instance. Shares no code with the solvers.
#pragma once

#include <string>

#include "packer/types.h"

namespace hotpack {

// Empty when every block has a nonnegative, aligned offset (its pinned one if pinned), no two blocks with overlapping
// residency share an address, and `height` is the exact top. Otherwise one line that names the first fault.
// O(n log n) for a valid placement.
std::string Validate(const Instance& instance, const Placement& placement);

}  // namespace hotpack
