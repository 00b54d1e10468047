// Packing heuristics of other systems, for comparison with hotpack's: instance in, placement out.
#pragma once

#include <cstdint>
#include <span>

#include "packer/types.h"

namespace hotpack::bench {

struct Heuristic {
  const char* name;
  Placement (*pack)(const Instance& instance);
  int64_t most_blocks;  // larger instances take minutes
};

// Returns hotpack's own (best-fit, auto, exact: Pack()) and those of other systems, each written from the description
// named in heuristics.cc and tools/compare/offline.h. All are offline: they know all blocks in advance. Instances must
// be well-formed.
std::span<const Heuristic> Heuristics();

// Time limit of auto and exact. For large instances the limit is so long for each block that it is a few times
// best-fit's time. Best-fit and the other systems' heuristics have no limit, because a heuristic that is cut short is
// another one.
inline constexpr int64_t kSolveNs = 200'000'000;
inline constexpr int64_t kSolveNsABlock = 5'000;

}  // namespace hotpack::bench
