// Which blocks conflict (are resident together), and the highest top over time: queries of TVM's planners.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "packer/timeline.h"
#include "packer/types.h"

namespace hotpack::bench {

// Returns by block the number of its conflicts. They are counted by residency: two blocks with several residencies have
// one for each pair that overlaps. O(n log n).
std::vector<int64_t> CountConflicts(const Instance& instance);

// Returns by block the blocks in conflict with it, ascending. O(n log n + pairs) time and memory.
std::vector<std::vector<int32_t>> ListConflicts(const Instance& instance);

// Returns the blocks by size, the largest first. Ties: the one with most conflicts, then by index. O(n log n).
std::vector<int32_t> OrderBySize(const Instance& instance);

// Places each block of `order` at the lowest offset that is free for its whole residency.
Placement PlaceLowest(const Timeline& timeline, const std::vector<int32_t>& order);

// By slot of a ring: the highest top of the blocks placed there. Each operation takes O(log slots).
class TopTree {
 public:
  explicit TopTree(int32_t slots);
  Offset Highest(int32_t begin, int32_t end) const { return Highest(1, 0, leaves_, begin, end); }
  // Raises all of [begin, end) to at least `top`.
  void Raise(int32_t begin, int32_t end, Offset top) { Raise(1, 0, leaves_, begin, end, top); }
  // Calls the function with the spans [begin, end) of arcs, which may continue at slot 0.
  template <typename Function>
  void ForEachSpan(std::span<const Arc> arcs, Function function) const {
    for (const Arc& arc : arcs) {
      function(arc.begin, arc.end < slots_ ? arc.end : slots_);
      if (arc.end > slots_) function(0, arc.end - slots_);
    }
  }

 private:
  Offset Highest(size_t node, int32_t low, int32_t high, int32_t begin, int32_t end) const;
  void Raise(size_t node, int32_t low, int32_t high, int32_t begin, int32_t end, Offset top);

  int32_t slots_;
  int32_t leaves_ = 1;
  std::vector<Offset> highest_;  // in heap order: the highest of the node's slots
  std::vector<Offset> floor_;    // in heap order: a lower bound of all of them
};

}  // namespace hotpack::bench
