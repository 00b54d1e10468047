// Runs many fast solvers and keeps the best placement: the implementation of Algorithm::kAuto.
#pragma once

#include <cstdint>

#include "packer/pack.h"
#include "packer/shared_best.h"
#include "packer/timeline.h"

namespace hotpack {

// Improves `best` until it is done, the deadline (a value of NanosecondsOn(options.clock)) has passed, or
// options.cancel is set. Deterministic for a seed with one thread and no time-out. Thread-safe.
// - kAuto: first dives with a few fixed keys. Then the squeaky wheel (packer/squeaky.h), with an occasional first-fit,
//   and the exact search (packer/exact_solver.h, unless the instance is too large) take turns, which grow longer.
// - kExact: only the exact search.
void RunPortfolio(const Timeline& timeline, const PackOptions& options, int64_t deadline_ns, SharedBest* best);

}  // namespace hotpack
