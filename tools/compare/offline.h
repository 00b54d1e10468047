// The planners of TFLite and XLA, which know all blocks beforehand.
#pragma once

#include "packer/types.h"

namespace hotpack {

// TFLite's arena planner: "greedy by size for offset calculation" (Pisarchyk and Lee, "Efficient Memory Management for
// Deep Neural Net Inference", 2020, §5.2). Blocks that are resident all the time come first, then by decreasing size,
// equal ones in the order of their first use; each goes into the smallest gap. O(n · blocks that one meets · log).
Placement PackAsTflite(const Instance& instance);

// XLA's heap simulator as the compiler's buffer assignment uses it, its global decreasing-size best fit: one placement
// in the order of decreasing size (equal ones: of decreasing lifetime), one in the order of decreasing lifetime (equal
// ones: of decreasing size), each block into the smallest gap; the lower placement counts. The same cost.
Placement PackAsXla(const Instance& instance);

}  // namespace hotpack
