// An instance in the form that the solvers use. Clock values become consecutive slots. A block that is resident at both
// ends of time becomes one arc of a ring.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "packer/types.h"

namespace hotpack {

// The slots [begin, end) of the ring: 0 ≤ begin < slots, begin < end ≤ begin + slots. If end > slots, the arc continues
// at slot 0.
//
//    carried block, as in the instance         the same as one arc
//    ├──┐        ┌────┤                              ┌────┬──┐
//    ├──┘        └────┤                              └────┴──┘
//    0  a        b    N                              b    N  N + a
struct Arc {
  int32_t begin;
  int32_t end;
};

// Joining time's two ends changes no collision: slots are only sets of blocks that are resident together. If no block
// is resident at both ends, the ring has one more slot, the wall. No block is resident there, and no skyline line may
// cross it. The solvers then work as on a straight time axis.
struct Timeline {
  int32_t slots = 0;    // length of the ring, including the wall
  bool walled = false;  // the last slot is the wall
  // clocks[s]: where slot s begins. One more at the end: where the last slot but the wall ends.
  std::vector<Clock> clocks;

  // By block.
  std::vector<Bytes> sizes;
  std::vector<Bytes> alignments;
  std::vector<Offset> pins;
  std::vector<Clock> lifetimes;     // clock ticks in residency
  std::vector<int32_t> arc_starts;  // blocks + 1 entries into `arcs`
  std::vector<Arc> arcs;            // of one block: ascending begin, disjoint, not touching

  std::vector<Bytes> loads;  // by slot; the wall's is 0

  int32_t blocks() const { return static_cast<int32_t>(sizes.size()); }
  std::span<const Arc> arcs_of(int32_t block) const {
    return {arcs.data() + arc_starts[block], arcs.data() + arc_starts[block + 1]};
  }
  // Returns whether the block is resident at every slot.
  bool AlwaysResident(int32_t block) const {
    const Arc& arc = arcs[arc_starts[block]];
    return arc.end - arc.begin == slots - (walled ? 1 : 0);
  }
};

// Converts an instance, which must be well-formed (CheckInstance() returns kOk). O(n). If the clock values are
// scattered over more than 64 times their number: O(n) for each 11 bits of them.
Timeline MakeTimeline(const Instance& instance);

// Returns, by block, the largest load at the slots in which it is resident. O(n log n).
std::vector<Bytes> LargestLoadsMet(const Timeline& timeline);

// Returns whether the two arcs share a slot of a ring of `slots` slots.
inline bool ArcsMeet(const Arc& a, const Arc& b, int32_t slots) {
  return (a.begin < b.end && b.begin < a.end) || a.begin + slots < b.end || b.begin + slots < a.end;
}

}  // namespace hotpack
