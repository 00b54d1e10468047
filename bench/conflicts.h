// Which blocks meet (are resident together), and the highest top over time: what TVM's planners ask.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "packer/timeline.h"
#include "packer/types.h"

namespace hotpack::bench {

// By block: how many others it meets. Counted by residency: of two blocks with several that meet each pair counts. O(n
// log n).
std::vector<int64_t> CountConflicts(const Instance& instance);

// By block: the others it meets, ascending. O(n log n + pairs) time and memory.
std::vector<std::vector<int32_t>> ListConflicts(const Instance& instance);

// The largest first, of equal ones the one that meets most others, then by index. O(n log n).
std::vector<int32_t> OrderBySize(const Instance& instance);

// Each block of `order` at the lowest offset that is free for its whole residency.
Placement PlaceLowest(const Timeline& timeline, const std::vector<int32_t>& order);

// By slot of a ring: the highest top of what is placed there. Each operation O(log slots).
class TopTree {
 public:
  explicit TopTree(int32_t slots);
  Offset Highest(int32_t begin, int32_t end) const { return Highest(1, 0, leaves_, begin, end); }
  // All of [begin, end) is at least `top` from now on.
  void Raise(int32_t begin, int32_t end, Offset top) { Raise(1, 0, leaves_, begin, end, top); }
  // The spans [begin, end) of arcs, which may go on at slot 0.
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
  std::vector<Offset> highest_;  // heap order: of the node's slots
  std::vector<Offset> floor_;    // ... what all of them have at least
};

}  // namespace hotpack::bench
