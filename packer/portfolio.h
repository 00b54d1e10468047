// Many quick solvers, the best placement of all: what Algorithm::kAuto runs.
#pragma once

#include <cstdint>

#include "packer/pack.h"
#include "packer/timeline.h"

namespace hotpack {

// The best placement found so far, and which solver found it (a static string).
struct Incumbent {
  Placement placement;
  const char* algorithm = "";
};

// Improves on `incumbent` (a valid placement) until its height is at most max(lower_bound, options.capacity), the
// deadline (a value of MonotonicNanoseconds()) has passed, or options.cancel is set. First the published best-fit, then
// dives with a few fixed keys, then the squeaky wheel (packer/squeaky.h) from the best of these and, where it comes to
// nothing for long, from others; now and then first-fit. Deterministic for a seed with one thread and no time-out. Thread-safe.
void RunPortfolio(const Timeline& timeline, const PackOptions& options, Bytes lower_bound, int64_t deadline_ns,
                  Incumbent* incumbent);

}  // namespace hotpack
