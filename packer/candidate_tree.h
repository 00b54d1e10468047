// Finds, among the blocks that are not placed yet, the one of highest rank that fits a skyline line's slots.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "packer/timeline.h"

namespace hotpack {

// A segment tree over the arcs sorted by begin. Every node knows the highest rank and the lowest end below it, so a
// search descends only where both allow something better; no list of overlapping pairs is ever made, and a search
// takes about O(log n). Not thread-safe.
class CandidateTree {
 public:
  static constexpr int32_t kNone = -1;

  explicit CandidateTree(const Timeline& timeline);

  // Takes all blocks in again; `ranks` holds different numbers ≥ 0. O(n).
  void Reset(std::span<const int32_t> ranks);
  // The block is no longer to be found. O(log n) an arc.
  void Remove(int32_t block);
  bool Holds(int32_t block) const { return nodes_[leaves_ + leaf_of_arc_[timeline_.arc_starts[block]]].max_rank >= 0; }

  // The block of highest rank that has an arc within the slots [begin, end) and for which accept(block) is true, or
  // kNone. 0 ≤ begin < slots, begin < end ≤ begin + slots: the line may go on at slot 0.
  template <typename Accept>
  int32_t FindBest(int32_t begin, int32_t end, const Accept& accept) const {
    Best best;
    if (end <= slots_) {
      Search(first_leaf_[begin], first_leaf_[end], end, accept, &best);
    } else {
      Search(first_leaf_[begin], first_leaf_[slots_], end, accept, &best);
      Search(first_leaf_[0], first_leaf_[end - slots_], end - slots_, accept, &best);
    }
    return best.block;
  }
  // The same where the whole ring is one line, which has no ends.
  template <typename Accept>
  int32_t FindBestAnywhere(const Accept& accept) const {
    Best best;
    Search(first_leaf_[0], first_leaf_[slots_], 2 * slots_, accept, &best);
    return best.block;
  }

 private:
  struct Node {
    int32_t max_rank;  // -1: nothing below
    int32_t min_end;
  };
  struct Best {
    int32_t block = kNone;
    int32_t rank = -1;
  };

  void Pull(int32_t node) {
    const Node& left = nodes_[2 * node];
    const Node& right = nodes_[2 * node + 1];
    nodes_[node].max_rank = left.max_rank > right.max_rank ? left.max_rank : right.max_rank;
    nodes_[node].min_end = left.min_end < right.min_end ? left.min_end : right.min_end;
  }

  // Leaves [from, to) with end ≤ end_limit.
  template <typename Accept>
  void Search(int32_t from, int32_t to, int32_t end_limit, const Accept& accept, Best* best) const {
    // The usual bottom-up cover of a range by whole subtrees; at most one a level and side.
    int32_t left = from + leaves_;
    int32_t right = to + leaves_;
    for (; left < right; left /= 2, right /= 2) {
      if (left & 1) Descend(left++, end_limit, accept, best);
      if (right & 1) Descend(--right, end_limit, accept, best);
    }
  }

  template <typename Accept>
  void Descend(int32_t node, int32_t end_limit, const Accept& accept, Best* best) const {
    if (nodes_[node].max_rank <= best->rank || nodes_[node].min_end > end_limit) return;
    if (node >= leaves_) {
      const int32_t block = leaf_blocks_[node - leaves_];
      if (accept(block)) *best = {block, nodes_[node].max_rank};
      return;
    }
    const int32_t first = 2 * node + (nodes_[2 * node + 1].max_rank > nodes_[2 * node].max_rank ? 1 : 0);
    Descend(first, end_limit, accept, best);
    Descend(first ^ 1, end_limit, accept, best);
  }

  const Timeline& timeline_;
  const int32_t slots_;
  int32_t leaves_;                    // a power of two
  std::vector<Node> nodes_;           // heap order, the root at 1
  std::vector<int32_t> leaf_blocks_;  // by leaf
  std::vector<int32_t> leaf_ends_;    // by leaf
  std::vector<int32_t> leaf_of_arc_;  // by index into timeline.arcs
  std::vector<int32_t> first_leaf_;   // by slot, slots + 1 entries: the first arc that begins there or later
};

}  // namespace hotpack
