// Memory over time, of a placement and of a whole run.
#pragma once

#include <vector>

#include "packer/types.h"
#include "profiler/event.h"

namespace hotpack {

// Step functions with the same steps. From at[i] to at[i + 1] (the last one to the end of the instance) the load is
// load[i], and the highest resident block ends at top[i]. The difference is fragmentation.
struct PlacementCurves {
  std::vector<Clock> at;
  std::vector<Bytes> load;
  std::vector<Bytes> top;
  Clock end = 0;
};

// O(n log n).
PlacementCurves CurvesOf(const Instance& instance, const Placement& placement);

// Live bytes (each block rounded up to 512) along a run: the minimum and the maximum in each of `columns` equal pieces
// of its events, or one per event.
struct RunCurve {
  uint64_t events = 0;
  std::vector<uint64_t> least;
  std::vector<uint64_t> most;
};
RunCurve CurveOfRun(const Trace& trace, size_t columns);  // O(events)

}  // namespace hotpack
