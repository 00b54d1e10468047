// Which blocks meet, and which may take each other's places.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "packer/cliques.h"
#include "packer/stop.h"
#include "packer/timeline.h"

namespace hotpack {

// By block: the others that are resident together with it at some slot, each once.
struct Pairs {
  std::vector<int32_t> starts;  // blocks + 1 entries into `others`
  std::vector<int32_t> others;

  std::span<const int32_t> Of(int32_t block) const {
    return {others.data() + starts[block], others.data() + starts[block + 1]};
  }
};

// O(n log n + pairs); CountPairs() says before how many. Once `stop` says so, no pairs at all.
Pairs MakePairs(const Timeline& timeline, StopCheck* stop);

// By block, a number that equal blocks share: of one size, alignment and set of cliques. A pinned block is like no
// other. O(n log n) comparisons of lists of cliques.
std::vector<int32_t> ClassesOfEqualBlocks(const Timeline& timeline, const Cliques& cliques);

}  // namespace hotpack
