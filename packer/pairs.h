// Which blocks meet, and which blocks may swap places.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "packer/cliques.h"
#include "packer/stop.h"
#include "packer/timeline.h"

namespace hotpack {

// By block: the other blocks that are resident at a common slot, each once.
struct Pairs {
  std::vector<int32_t> starts;  // blocks + 1 entries into `others`
  std::vector<int32_t> others;

  std::span<const int32_t> Of(int32_t block) const {
    return {others.data() + starts[block], others.data() + starts[block + 1]};
  }
};

// Computes all pairs; CountPairs() tells their number in advance. Returns no pairs at all once `stop` fires. O(n log n
// + pairs).
Pairs MakePairs(const Timeline& timeline, StopCheck* stop);

// Returns, by block, a number that equal blocks share: those with the same size, alignment and set of cliques. A pinned
// block equals no other. O(n log n) comparisons of lists of cliques.
std::vector<int32_t> ClassesOfEqualBlocks(const Timeline& timeline, const Cliques& cliques);

}  // namespace hotpack
