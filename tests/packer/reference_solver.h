// The judge of the solvers: optima of small instances by trial. It shares only types with packer/: no timeline, no
// skyline, no sweep over time, only "which two blocks are ever resident together".
#pragma once

#include <optional>
#include <string>

#include "packer/types.h"

namespace hotpack::testing {

// More blocks are rejected with std::abort(). Over the shapes of small_instance.h it takes on average some 5
// microseconds at 7 blocks, and about three times as much for each additional block. Single instances take a thousand
// times that.
inline constexpr int kMaxReferenceBlocks = 16;

// The least height of an instance is in [least, placement.height]; the two are equal unless the steps ran out.
struct ReferenceResult {
  Placement placement;
  Bytes least = 0;
};

// The instance must be well-formed (CheckInstance() says kOk). A step is a block placed, about 0.1 microseconds.
ReferenceResult Reference(const Instance& instance, int64_t max_steps);

// Returns a placement of least height, without a time limit.
Placement ReferenceOptimum(const Instance& instance);

// A placement of height ≤ capacity, or nothing if there is none.
std::optional<Placement> ReferenceWithin(const Instance& instance, Bytes capacity);

// The larger of the load's maximum and the top of the highest pinned block. O(n²) with several intervals counted.
Bytes ReferenceLoad(const Instance& instance);

// Returns the fault of the placement, or an empty string: each block by itself, each pair of blocks, the height. O(n²).
std::string ReferenceFault(const Instance& instance, const Placement& placement);

// False when two pinned blocks overlap. O(n²).
bool ReferencePinsFit(const Instance& instance);

}  // namespace hotpack::testing
