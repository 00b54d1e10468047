// A whole solve: decomposition, then heuristics and exact search on what is left.
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

// options: its algorithm is kAuto or kExact; capacity, start and time limit are not looked at. start: a valid
// placement. lower: no placement is lower. Ends when `goal` is reached or proved out of reach, at the deadline (a value
// of NanosecondsOn(options.clock)), or when options.cancel is set. Thread-safe.
Solution Solve(const Instance& instance, const Timeline& timeline, const PackOptions& options, Incumbent start,
               Bytes lower, Goal goal, int64_t deadline_ns);

// Every block above all others, the pinned ones below: valid, and there in O(n).
Placement Stacked(const Timeline& timeline);

}  // namespace hotpack
