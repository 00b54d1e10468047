// Squeaky-wheel search over skyline dives: what did not fit gets a better rank and the dive is done again.
#pragma once

#include <cstdint>
#include <vector>

#include "packer/arc_index.h"
#include "packer/random.h"
#include "packer/skyline.h"
#include "packer/stop.h"
#include "packer/timeline.h"
#include "packer/types.h"

namespace hotpack {

// A dive below a fixed height gives up as soon as some slot has come to be too narrow for what still waits there. The
// blocks that wait at that slot are the ones that should have come earlier, while the skyline was still wide enough for
// them: their scores are raised, each by about a step of its own that grows with every complaint (mostly all alike, so
// that they keep their order among themselves), and the next dive follows the new order (after Joslin and Clements,
// "Squeaky Wheel Optimization", 1999). The dives have foresight (packer/skyline.h): they fail less early, and seldom
// for what one other choice would have mended.
//
//    height ▲──────────────────── highest       the two upper blocks wait at slot s: together they are higher than the
//           │  ┌──┬─╌╌╌╌╌╌╌╌╌┐                  room that is left above the line once it is lifted
//           │  │  │▁▁▁▁┌─────┤
//           │──┘       └─────┘
//           └───────s───────────► slots
//
// Every other dive (every eighth of very large instances) aims at the lower bound itself, the others at a height
// between it and the best one known, which drops after a success and comes nearer to the best height with each failure.
//
// One dive costs O(n log n) at worst, what comes after it O(n + blamed * log n). Decisions depend on the seed and on
// counts only. Not thread-safe: one a thread; `timeline`, `index` and `skyline` must outlive it.
class SqueakyWheel {
 public:
  SqueakyWheel(const Timeline& timeline, const ArcIndex& index, Skyline* skyline, uint64_t seed);

  // How far a block may come up at once: small steps keep more of the order, large ones leave it sooner.
  enum class Steps { kSmall, kLarge };

  // Begins anew from these scores (higher: earlier), one a block.
  void Begin(const std::vector<double>& scores, Steps kind = Steps::kSmall);

  // One dive. `height`: of the best placement known, above lower_bound. True when it found a lower one, which is then
  // in *placement; after false *placement is of no use. O(n log n).
  bool Dive(Bytes lower_bound, Bytes height, StopCheck* stop, Placement* placement);

  // As they are now; after a success, those that led to it.
  const std::vector<double>& scores() const { return scores_; }

 private:
  Bytes Aim(Bytes lower_bound, Bytes height);
  void CollectBlamed();
  void RaiseBlamed();

  const Timeline& timeline_;
  const ArcIndex& index_;
  Skyline& skyline_;
  Random random_;
  float step_growth_ = 1;
  float largest_step_ = 0;
  double aim_ = 0;      // the height aimed at, as a share of the way from the bound to the best
  uint64_t dives_ = 0;  // since Begin()
  std::vector<double> scores_;
  std::vector<float> steps_;  // by block: the most by which its score is raised the next time
  std::vector<int32_t> order_;
  std::vector<int32_t> ranks_;
  std::vector<int32_t> blamed_;
};

}  // namespace hotpack
