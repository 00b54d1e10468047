// The planners of TFLite and XLA, which know all blocks in advance.
#pragma once

#include "packer/types.h"

namespace hotpack {

// TFLite's arena planner: "greedy by size for offset calculation" (Pisarchyk and Lee, "Efficient Memory Management for
// Deep Neural Net Inference", 2020, §5.2). Blocks that are always resident come first, then by decreasing size; equal
// ones in the order of first use. Each goes into the smallest gap. O(n · blocks that one meets · log).
Placement PackAsTflite(const Instance& instance);

// XLA's heap simulator in the compiler's buffer assignment: global decreasing-size best fit. Makes two placements, each
// block into the smallest gap, and returns the lower one. One goes by decreasing size (equal ones: lifetime), the other
// by decreasing lifetime (equal ones: size). The same cost.
Placement PackAsXla(const Instance& instance);

}  // namespace hotpack
