// Many quick solvers, the best placement of all: what Algorithm::kAuto runs.
#pragma once

#include <cstdint>

#include "packer/pack.h"
#include "packer/shared_best.h"
#include "packer/timeline.h"

namespace hotpack {

// Improves on `incumbent` (a valid placement) until its height is at most max(lower_bound, options.capacity), the
// deadline (a value of MonotonicNanoseconds()) has passed, or options.cancel is set. First the published best-fit, then
// fixed keys, then random ones and variations of the best one so far; each key is used by a skyline dive, some by
// first-fit too. Deterministic for a seed with one thread and no time-out. Thread-safe.
void RunPortfolio(const Timeline& timeline, const PackOptions& options, Bytes lower_bound, int64_t deadline_ns,
                  Incumbent* incumbent);

}  // namespace hotpack
