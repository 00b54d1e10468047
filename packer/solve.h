// A whole solve: decomposition, then heuristics and exact search on the parts.
#pragma once

#include <cstdint>

#include "packer/pack.h"
#include "packer/shared_best.h"
#include "packer/timeline.h"
#include "packer/types.h"

namespace hotpack {

struct Solution {
  Incumbent incumbent;
  Bytes lower = 0;  // no placement is lower
};

// Improves `start`, a valid placement. `options`: the algorithm must be kAuto or kExact; capacity, start and time limit
// are ignored. `lower`: no placement is lower. Ends when `goal` is reached or proved impossible, at the deadline (a
// value of NanosecondsOn(options.clock)), or when options.cancel is set. Thread-safe.
Solution Solve(const Instance& instance, const Timeline& timeline, const PackOptions& options, Incumbent start,
               Bytes lower, Goal goal, int64_t deadline_ns);

// Returns a valid placement: pinned blocks at their pins, all others stacked above them. O(n).
Placement Stacked(const Timeline& timeline);

}  // namespace hotpack
