// The best-fit heuristic as published (Sekiyama et al. 2018, §3.2).
#pragma once

#include <cstdint>
#include <vector>

#include "packer/skyline.h"
#include "packer/stop.h"
#include "packer/timeline.h"
#include "packer/types.h"

namespace hotpack {

// One step, in the instance's own clock; what Figure 1 of the paper draws.
struct BestFitStep {
  enum Kind { kPlace, kLift };
  Kind kind;
  Clock line_begin;  // the chosen offset line: [line_begin, line_end). Where blocks are carried over the end of time, a
  Clock line_end;    // line may go on at its beginning; line_end is then counted on past the end
  Offset height;     // of the line before the step
  int32_t block;     // kPlace: placed on the line; kLift: -1
  Offset to;         // kPlace: top of the block; kLift: what the line was lifted to
};

// Ranks for Skyline::Dive(): the longest lifetime (clock ticks in residency) first. The paper leaves blocks of equal
// lifetime open; here the larger comes first, then the one with the smaller index. O(n) for each 11
// bits of the lifetimes and the sizes.
std::vector<int32_t> BestFitRanks(const Timeline& timeline);

// Packs a well-formed instance (CheckInstance() says kOk) by the published rule; packer/skyline.h says what is done
// about alignment, pinned blocks and several residency intervals, of which the paper does not speak. `steps`, unless
// null, receives every step. About O(n log n). Thread-safe.
Placement PackBestFit(const Instance& instance, std::vector<BestFitStep>* steps = nullptr);

}  // namespace hotpack
