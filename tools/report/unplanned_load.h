// What is live beside the plan while the packed iteration runs: weights, and blocks that are asked for but not planned.
#pragma once

#include <cstdint>
#include <vector>

#include "profiler/event.h"
#include "tools/recording/hot_iteration.h"
#include "tools/report/curves.h"
#include "tools/report/requests.h"

namespace hotpack {

// From at[i] to at[i + 1], on the clock of the hot iteration, bytes[i] (each block rounded up to 512) are live that the
// plan has no place for. Empty: there is no iteration, so nothing is beside the plan.
struct UnplannedLoad {
  std::vector<Clock> at;
  std::vector<Bytes> bytes;
  Bytes most = 0;  // what `hotpack compare` calls not planned
  Bytes least = 0;
  uint64_t blocks = 0;  // live when the most is
};

// Of the iteration `hot`. `requests` are those of the trace. O(events).
UnplannedLoad UnplannedLoadOf(const Trace& trace, const RecordedRequests& requests, const HotIteration& hot);

// The most that is live at once, planned or not: no allocator holds less.
Bytes LivePeak(const PlacementCurves& curves, const UnplannedLoad& unplanned);

}  // namespace hotpack
