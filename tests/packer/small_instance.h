// Small instances of many shapes, made quickly (about a microsecond), for checks by the million.
#pragma once

#include "packer/random.h"
#include "packer/types.h"

namespace hotpack::testing {

// Returns 1 to max_blocks blocks, always well-formed. Drawn again for each instance:
//  - ranges of sizes and clock values, few or many (so that ties and gaps matter);
//  - shares of blocks that are resident all the time, at both ends of time, or in several intervals, some touching;
//  - alignments among 1, 2, 3, 4, 5, 8 and 16; blocks equal to others;
//  - pins that do not collide, also at heights above the load; clock values around zero or far from it.
// One instance in four is a cut rectangle.
Instance SmallInstance(int max_blocks, Random* random);

// An instance with a known placement.
struct KnownInstance {
  Instance instance;
  // Valid. If no piece was left out or cut short, it has the load's height: an optimum.
  Placement placement;
};

// Returns a rectangle of clock ticks times bytes, cut into at most max_blocks pieces, straight through and in pinwheels
// (which no sequence of straight cuts gives). The load is the height at every moment. So only a perfect packing is an
// optimum, which is hard for heuristics. Parts of the instances have in addition:
//  - rotated time, so that pieces become carried;
//  - pieces at the same height joined to one block with several intervals;
//  - alignments and pins that the packing keeps;
//  - pieces left out or cut short.
//
//    offset ▲ ┌─────────┬────┐
//           │ │    1    │    │       a pinwheel
//           │ ├────┬────┤  2 │
//           │ │    │  5 │    │
//           │ │ 4  ├────┴────┤
//           │ │    │    3    │
//           └─┴────┴─────────┴──► clock
KnownInstance CutRectangle(int max_blocks, Random* random);

// Returns some two thirds of so many blocks (at least 400), made from a cut rectangle with slightly changed sizes. In a
// second or two neither its least height is found nor a bound above its load proved.
Instance HardInstance(int blocks, uint64_t seed);

// Seven blocks, no alignment, no pins: load 10, least height 11.
Instance AboveItsLoad();

}  // namespace hotpack::testing
