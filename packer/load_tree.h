// Load by slot under changes: the sum of resident sizes still to be placed.
#pragma once

#include <cstdint>
#include <vector>

#include "packer/types.h"

namespace hotpack {

// A segment tree with two operations, both O(log slots): "add to a range" and "does any value in a range exceed a
// limit". Additions stay at the nodes that cover the range and are summed up on the way down, so none is ever pushed
// down. Not thread-safe.
class LoadTree {
 public:
  // Allocates memory only at the first Reset(), which must be the first call.
  explicit LoadTree(int32_t slots);

  // `values`: one per slot. O(slots).
  void Reset(const std::vector<Bytes>& values);
  // Adds `change` to the slots [begin, end), 0 ≤ begin < end ≤ slots.
  void Add(int32_t begin, int32_t end, Bytes change);
  bool AnyAbove(Bytes limit, int32_t begin, int32_t end) const { return AnyBelow(1, 0, leaves_, limit, begin, end); }
  Bytes At(int32_t slot) const;  // O(log slots)
  // Returns the first slot of the range whose value exceeds the limit, or -1.
  int32_t FirstAbove(Bytes limit, int32_t begin, int32_t end) const {
    return FirstBelow(1, 0, leaves_, limit, begin, end);
  }

 private:
  struct Node {
    Bytes max = 0;    // over the subtree, including all additions at or below this node
    Bytes added = 0;  // to every slot of the subtree, at this node
  };

  void AddTo(int32_t node, Bytes change) {
    nodes_[node].max += change;
    nodes_[node].added += change;
  }
  void PullAbove(int32_t leaf);
  bool AnyBelow(int32_t node, int32_t from, int32_t to, Bytes limit, int32_t begin, int32_t end) const;
  int32_t FirstBelow(int32_t node, int32_t from, int32_t to, Bytes limit, int32_t begin, int32_t end) const;

  int32_t leaves_;           // a power of two
  std::vector<Node> nodes_;  // heap order, the root at 1
};

}  // namespace hotpack
