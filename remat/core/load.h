// Resident bytes of a schedule, and a lower bound on the memory of any schedule.
#pragma once

#include <vector>

#include "remat/core/simulator.h"

namespace hotpack::remat {

// Returns the resident bytes at each clock value from 0 on. O(residencies + clock values).
std::vector<Bytes> LoadOf(const std::vector<StorageResidency>& residencies);

// Returns a lower bound in bytes on the memory of any plan. O(size of the graph). It is the largest of:
//  - for each operator, its operands and workspace, and, unless `swap`, all contents that are both given and kept;
//  - all given contents, at the beginning;
//  - all kept contents, at the end.
Bytes LeastMemory(const Graph& graph, bool swap);

}  // namespace hotpack::remat
