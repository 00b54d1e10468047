// The best-fit heuristic as published (Sekiyama et al. 2018, §3.2).
#pragma once

#include <cstdint>
#include <vector>

#include "packer/skyline.h"
#include "packer/stop.h"
#include "packer/timeline.h"
#include "packer/types.h"

namespace hotpack {

// One step, in the instance's own clock; Figure 1 of the paper draws these steps.
struct BestFitStep {
  enum Kind { kPlace, kLift };
  Kind kind;
  // The chosen offset line: [line_begin, line_end). If blocks are carried over the end of time, a line may continue at
  // the beginning; line_end then counts on past the end.
  Clock line_begin;
  Clock line_end;
  Offset height;  // of the line before the step
  int32_t block;  // kPlace: placed on the line; kLift: -1
  Offset to;      // kPlace: top of the block; kLift: the line's new height
};

// Returns ranks for Skyline::Dive(): the longest lifetime (clock ticks in residency) first. The paper does not order
// blocks of equal lifetime; here the larger comes first, then the one with the smaller index. O(n) for each 11 bits of
// the lifetimes and the sizes.
std::vector<int32_t> BestFitRanks(const Timeline& timeline);

// Packs a well-formed instance (CheckInstance() returns kOk) by the published rule. packer/skyline.h describes the
// treatment of alignment, pinned blocks and several residency intervals, which the paper does not cover. `steps`,
// unless null, receives every step. About O(n log n). Thread-safe.
Placement PackBestFit(const Instance& instance, std::vector<BestFitStep>* steps = nullptr);

}  // namespace hotpack
