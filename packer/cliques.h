// Which blocks are resident together: the exact search needs no other information about time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "packer/stop.h"
#include "packer/timeline.h"

namespace hotpack {

// The maximal sets of blocks that are resident at one slot. Two blocks may collide if and only if one of these cliques
// contains both. Slots whose set is contained in a neighbour's are omitted, because they add no constraint. So there
// are at most as many cliques as blocks with one arc each.
struct Cliques {
  std::vector<int32_t> clique_starts;     // cliques + 1 entries into `members`
  std::vector<int32_t> members;           // blocks, by clique
  std::vector<int32_t> block_starts;      // blocks + 1 entries into `cliques_of_block`
  std::vector<int32_t> cliques_of_block;  // ascending

  int32_t cliques() const { return static_cast<int32_t>(clique_starts.size()) - 1; }
  std::span<const int32_t> MembersOf(int32_t clique) const {
    return {members.data() + clique_starts[clique], members.data() + clique_starts[clique + 1]};
  }
  std::span<const int32_t> CliquesOf(int32_t block) const {
    return {cliques_of_block.data() + block_starts[block], cliques_of_block.data() + block_starts[block + 1]};
  }
};

// Returns the sum of the cliques' sizes without making them. O(n + slots).
int64_t CountMembers(const Timeline& timeline);

// Returns the number of pairs of blocks that are resident together at some slot; for blocks with several arcs, an upper
// bound. O(n log n).
int64_t CountPairs(const Timeline& timeline);

// Makes all cliques; none at all once `stop` fires. O(n + slots + CountMembers()).
Cliques MakeCliques(const Timeline& timeline, StopCheck* stop);

}  // namespace hotpack
