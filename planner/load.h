// What is resident while a schedule runs, for planners that look for what to let go.
#pragma once

#include <vector>

#include "planner/simulator.h"

namespace hotpack::planner {

// Bytes resident at each clock value from 0 on. O(stays + clock values).
std::vector<Bytes> LoadOf(const std::vector<Stay>& stays);

}  // namespace hotpack::planner
