// Many quick solvers, the best placement of all: what Algorithm::kAuto runs.
#pragma once

#include <cstdint>

#include "packer/pack.h"
#include "packer/shared_best.h"
#include "packer/timeline.h"

namespace hotpack {

// Improves on `best` until it is done, the deadline (a value of NanosecondsOn(options.clock)) has passed, or
// options.cancel is set. With kAuto: dives with a few fixed keys; then the squeaky wheel (packer/squeaky.h), now and
// then first-fit, and the exact search (packer/exact_solver.h, unless the instance is too large for it) in turns, which
// grow longer. With kExact the exact search alone. Deterministic for a seed with one thread and no time-out.
// Thread-safe.
void RunPortfolio(const Timeline& timeline, const PackOptions& options, int64_t deadline_ns, SharedBest* best);

}  // namespace hotpack
