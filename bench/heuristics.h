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

// Ours (best-fit, auto, exact: Pack()) and those of others, each written from the description that heuristics.cc and
// tools/compare/offline.h name. All are offline: they know all blocks beforehand. Instances must be well-formed.
std::span<const Heuristic> Heuristics();

// Of auto and exact, at most; of large instances so long for each block, a few times what best-fit takes. Best-fit
// itself has no limit, like those of others: a heuristic that is cut short is none.
inline constexpr int64_t kSolveNs = 200'000'000;
inline constexpr int64_t kSolveNsABlock = 5'000;

}  // namespace hotpack::bench
