// The packing heuristics of other systems, beside ours: instance in, placement out.
#pragma once

#include <cstdint>
#include <span>

#include "packer/types.h"

namespace hotpack::bench {

struct Heuristic {
  const char* name;
  Placement (*pack)(const Instance& instance);
  int64_t most_blocks;  // beyond that it takes minutes
};

// Ours (best-fit, auto, exact: Pack() with at most kSolveNs) and those of others, each written from the description that
// heuristics.cc and tools/peers/offline.h name. All are offline: they know all blocks beforehand. Instances must be well-formed.
std::span<const Heuristic> Heuristics();

inline constexpr int64_t kSolveNs = 200'000'000;  // of auto and exact, at most

}  // namespace hotpack::bench
