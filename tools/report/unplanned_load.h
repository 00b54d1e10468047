// Live bytes outside the plan while the packed iteration runs: weights, and requested but unplanned blocks.
#pragma once

#include <cstdint>
#include <vector>

#include "profiler/event.h"
#include "tools/recording/hot_iteration.h"
#include "tools/report/curves.h"
#include "tools/report/requests.h"

namespace hotpack {

// From at[i] to at[i + 1], on the clock of the hot iteration, bytes[i] (each block rounded up to 512) are live without
// an offset in the plan. Empty: there is no iteration, so no block is outside the plan.
struct UnplannedLoad {
  std::vector<Clock> at;
  std::vector<Bytes> bytes;
  Bytes most = 0;  // called "not planned" by `hotpack compare`
  Bytes least = 0;
  uint64_t blocks = 0;  // live at the maximum
};

// Returns the unplanned load of the iteration `hot`. `requests` are those of the trace. O(events).
UnplannedLoad UnplannedLoadOf(const Trace& trace, const RecordedRequests& requests, const HotIteration& hot);

// One tick of the packed iteration.
struct LiveMoment {
  Clock at = 0;
  Bytes load = 0;       // of planned blocks
  Bytes unplanned = 0;  // of others
};

// Returns the earliest tick at which most is live, planned or not. O(steps of both).
LiveMoment PeakMoment(const PlacementCurves& curves, const UnplannedLoad& unplanned);

// Returns the most that is live at once, planned or not: a lower bound for any allocator.
Bytes LivePeak(const PlacementCurves& curves, const UnplannedLoad& unplanned);

}  // namespace hotpack
