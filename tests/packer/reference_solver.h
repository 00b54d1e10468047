// The judge of the solvers: optima of small instances by trying out. Shares nothing with packer/ but its types; no
// timeline, no skyline, no sweep over time, only "which two blocks are ever resident together".
#pragma once

#include <optional>
#include <string>

#include "packer/types.h"

namespace hotpack::testing {

// More blocks are refused with std::abort(). At 7 blocks an instance takes some 2 microseconds, at 12 some 20 on
// average over the shapes of small_instance.h; single ones take a thousand times as long.
inline constexpr int kMaxReferenceBlocks = 16;

// A placement of least height. The instance must be well-formed (CheckInstance() says kOk).
Placement ReferenceOptimum(const Instance& instance);

// A placement of height ≤ capacity, or nothing if there is none.
std::optional<Placement> ReferenceWithin(const Instance& instance, Bytes capacity);

// The larger of the load's maximum and the top of the highest pinned block. O(n²) with several intervals counted.
Bytes ReferenceLoad(const Instance& instance);

// Empty, or what is wrong with the placement: each block by itself, each pair of blocks, the height. O(n²).
std::string ReferenceFault(const Instance& instance, const Placement& placement);

// False when two pinned blocks overlap. O(n²).
bool ReferencePinsFit(const Instance& instance);

}  // namespace hotpack::testing
