// Finds the block of highest rank among the unplaced ones that fit the slots of a skyline line.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "packer/timeline.h"

namespace hotpack {

// An arc is a point in the plane of begin and end. It lies within a line [begin, end) if the point lies in the lower
// right quadrant of the line's point:
//
//      end ▲ · ·   ·  ·  ·          The points are sorted along the Z-curve (Morton 1966), so that points next to each
//          │ ·  · ┌──────────       other in the order are close in the plane. Every four points make a node, every
//    line's│·     │ · fits  ·       four nodes a node of the next level, and so on. A node stores the highest rank, the
//      end │ ·   ·│·    ·           lowest end and the highest begin below it. A search enters it only if all three
//          │      │                 permit a better result. The nodes that it enters in vain are those cut by the
//          └──────┴─────────► begin quadrant's two edges: about √n at worst, and few in practice, because points along
//             line's begin          the edges are short arcs. (Sorted by begin alone, there could be n of them.)
//
// Not thread-safe.
class CandidateTree {
 public:
  static constexpr int32_t kNone = -1;

  // O(n log n).
  explicit CandidateTree(const Timeline& timeline);

  // Inserts all blocks again. `ranks`: different numbers ≥ 0. O(n).
  void Reset(std::span<const int32_t> ranks);
  // Removes the block; does nothing if it is not in the tree. O(log n) per arc.
  void Remove(int32_t block);
  bool Holds(int32_t block) const {
    const int32_t leaf = leaf_of_arc_[timeline_.arc_starts[block]];
    return nodes_[leaf / 4].max_rank[leaf % 4] >= 0;
  }

  // Returns the block of highest rank that has an arc within the slots [begin, end) and for which accept(block) is
  // true; kNone if there is none. 0 ≤ begin < slots, begin < end ≤ begin + slots: the line may continue at slot 0.
  template <typename Accept>
  int32_t FindBest(int32_t begin, int32_t end, const Accept& accept) const {
    if (end - begin <= kShortLine && end <= slots_ && !AnyMayFit(begin, end)) return kNone;
    Best best;
    const int32_t root_level = static_cast<int32_t>(level_starts_.size()) - 1;
    Descend(root_level, 0, {begin, end}, accept, &best);
    if (end > slots_) Descend(root_level, 0, {0, end - slots_}, accept, &best);
    return best.block;
  }
  // The same if the whole ring is one line, which has no ends.
  template <typename Accept>
  int32_t FindBestAnywhere(const Accept& accept) const {
    Best best;
    Descend(static_cast<int32_t>(level_starts_.size()) - 1, 0, {0, std::numeric_limits<int32_t>::max() - 1}, accept,
            &best);
    return best.block;
  }

  // Calls accept(block) for the blocks in the tree that have an arc within the slots [begin, end) over the slot, until
  // it returns true, and returns whether it did. `begin`, `end` as in FindBest(); 0 ≤ slot < slots lies within them.
  template <typename Accept>
  bool AnyOver(int32_t slot, int32_t begin, int32_t end, const Accept& accept) const {
    const int32_t root_level = static_cast<int32_t>(level_starts_.size()) - 1;
    if (DescendOver(root_level, 0, slot >= begin ? slot : slot + slots_, {begin, end}, accept)) return true;
    return slot < end - slots_ && DescendOver(root_level, 0, slot, {0, end - slots_}, accept);
  }

 private:
  // Four subtrees side by side: one cache line tells which of them to search. On the lowest level each is an arc.
  struct alignas(64) Node {
    int32_t max_rank[4];  // -1: empty
    int32_t min_end[4];
    int32_t max_begin[4];
    int32_t block[4];  // lowest level only
  };
  // Of the same four subtrees, with all their arcs, also removed ones.
  struct alignas(32) Extent {
    int32_t min_begin[4];
    int32_t max_end[4];
  };
  struct Best {
    int32_t block = kNone;
    int32_t rank = -1;
  };

  // Most searches are for short lines and find nothing. Checking the line's own slots shows that faster than the tree.
  static constexpr int32_t kShortLine = 32;
  struct Begin {
    int32_t min_end;  // of all arcs that begin at the slot
    int32_t left;     // number of them still in the tree
  };
  bool AnyMayFit(int32_t begin, int32_t end) const {
    for (int32_t slot = begin; slot < end; ++slot) {
      if (begins_[slot].left > 0 && begins_[slot].min_end <= end) return true;
    }
    return false;
  }

  void FindExtents();  // O(n log n)
  void Clear(Node* node, int32_t lane) const;
  // Recomputes one lane of `above` from `below`. Returns false if that changed nothing.
  static bool Pull(const Node& below, Node* above, int32_t lane);

  // Levels count from the lowest, 0; nodes from 0 on each.
  template <typename Accept>
  void Descend(int32_t level, int32_t index, Arc line, const Accept& accept, Best* best) const {
    const Node& node = nodes_[level_starts_[level] + index];
    alignas(16) int32_t ranks[4];
    for (int32_t lane = 0; lane < 4; ++lane) {  // all lanes at once; all bits set is -1
      const int32_t begins_before = -static_cast<int32_t>(node.max_begin[lane] < line.begin);
      const int32_t ends_after = -static_cast<int32_t>(node.min_end[lane] > line.end);
      ranks[lane] = node.max_rank[lane] | begins_before | ends_after;
    }
    for (;;) {  // the lane of highest rank first: its result may make the others unnecessary
      const int32_t left = ranks[1] > ranks[0] ? 1 : 0;
      const int32_t right = ranks[3] > ranks[2] ? 3 : 2;
      const int32_t lane = ranks[right] > ranks[left] ? right : left;
      if (ranks[lane] <= best->rank) return;
      if (level > 0) {
        Descend(level - 1, 4 * index + lane, line, accept, best);
      } else if (accept(node.block[lane])) {
        *best = {node.block[lane], ranks[lane]};
        return;
      }
      ranks[lane] = -1;
    }
  }

  // Enters all subtrees that may hold arcs within the line and over the slot.
  template <typename Accept>
  bool DescendOver(int32_t level, int32_t index, int32_t slot, Arc line, const Accept& accept) const {
    const Node& node = nodes_[level_starts_[level] + index];
    const Extent& extent = extents_[level_starts_[level] + index];
    for (int32_t lane = 0; lane < 4; ++lane) {
      if (node.max_rank[lane] < 0 || node.max_begin[lane] < line.begin || node.min_end[lane] > line.end ||
          extent.min_begin[lane] > slot || extent.max_end[lane] <= slot) {
        continue;
      }
      if (level > 0 ? DescendOver(level - 1, 4 * index + lane, slot, line, accept) : accept(node.block[lane]))
        return true;
    }
    return false;
  }

  const Timeline& timeline_;
  const int32_t slots_;
  std::vector<Node> nodes_;            // level by level
  std::vector<Extent> extents_;        // the same
  std::vector<int32_t> level_starts_;  // start of each in nodes_; the last level is only the root
  std::vector<int32_t> arc_of_leaf_;   // indices into timeline.arcs along the curve; leaf i is lane i % 4 of node i / 4
  std::vector<int32_t> leaf_of_arc_;
  std::vector<Begin> begins_;  // by slot
};

}  // namespace hotpack
