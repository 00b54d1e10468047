// Many quick solvers, the best placement of all: what Algorithm::kAuto runs.
#pragma once

#include "packer/pack.h"
#include "packer/timeline.h"

namespace hotpack {

// The best placement found so far. `height` is the largest Bytes as long as there is none.
struct Incumbent {
  Placement placement;
  const char* algorithm = "";
};

// Improves on `incumbent` (a valid placement) until its height is at most max(lower_bound, options.capacity), the
// deadline (a value of MonotonicNanoseconds()) has passed, or options.cancel is set. Deterministic for a seed with one
// thread and no time-out. Memory about 200 bytes a block and thread. Thread-safe.
void RunPortfolio(const Timeline& timeline, const PackOptions& options, Bytes lower_bound, int64_t deadline_ns,
                  Incumbent* incumbent);

}  // namespace hotpack
