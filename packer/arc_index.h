// Finds the blocks resident at a slot, without a list per slot.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "packer/timeline.h"

namespace hotpack {

// A segment tree over the arcs sorted by begin; each node stores the largest end below it. Memory O(n), instead of O(n
// * residents) for a list per slot. Immutable after construction, so thread-safe.
class ArcIndex {
 public:
  explicit ArcIndex(const Timeline& timeline);  // O(n log n)

  // Calls visit(block) once for each block that is resident at `slot`, 0 ≤ slot < timeline.slots. Order: ascending
  // begin of the arc; arcs that cross slot 0 come last. O(residents * log n).
  template <typename Visit>
  void ForEachAt(int32_t slot, const Visit& visit) const {
    const auto arcs = static_cast<int32_t>(blocks_.size());
    const auto after = std::upper_bound(begins_.begin(), begins_.end(), slot);
    Descend(1, 0, leaves_, static_cast<int32_t>(after - begins_.begin()), slot, visit);
    Descend(1, 0, leaves_, arcs, slot + slots_, visit);
  }

 private:
  // Visits, of the leaves [from, to) below the node, those before `limit` whose arc ends after `slot`.
  template <typename Visit>
  void Descend(int32_t node, int32_t from, int32_t to, int32_t limit, int32_t slot, const Visit& visit) const {
    if (from >= limit || max_ends_[node] <= slot) return;
    if (node >= leaves_) {
      visit(blocks_[from]);
      return;
    }
    const int32_t middle = from + (to - from) / 2;
    Descend(2 * node, from, middle, limit, slot, visit);
    Descend(2 * node + 1, middle, to, limit, slot, visit);
  }

  int32_t slots_;
  int32_t leaves_ = 1;             // a power of two
  std::vector<int32_t> begins_;    // by leaf, ascending
  std::vector<int32_t> blocks_;    // by leaf
  std::vector<int32_t> max_ends_;  // heap order, the root at 1
};

}  // namespace hotpack
