// What is resident while a schedule runs, and the least that any can do with.
#pragma once

#include <vector>

#include "remat/core/simulator.h"

namespace hotpack::remat {

// Bytes resident at each clock value from 0 on. O(stays + clock values).
std::vector<Bytes> LoadOf(const std::vector<StorageResidency>& residencies);

// No plan takes less, in bytes: the operands and the workspace of some operator are there at once, and beside them,
// unless contents may be swapped, what is given and kept; all that is given at the beginning, and all that is kept at
// the end. O(size of the graph).
Bytes LeastMemory(const Graph& graph, bool swap);

}  // namespace hotpack::remat
