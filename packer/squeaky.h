// Squeaky-wheel search over skyline dives: blocks that did not fit get a better rank, and the dive is repeated.
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

// Method, after Joslin and Clements, "Squeaky Wheel Optimization", 1999:
// 1. A dive below a fixed height gives up as soon as some slot is too narrow for the blocks that still wait there.
// 2. These blocks should have come earlier, while the skyline was still wide enough for them. Their scores are raised,
//    each by about its own step, which grows with every complaint. Most steps are alike, so that the blocks keep their
//    order among themselves.
// 3. The next dive follows the new order.
// The dives have foresight (packer/skyline.h): fewer fail early, and they seldom fail for a reason that one other
// choice would have avoided.
//
//    height ▲──────────────────── highest       the two upper blocks wait at slot s: together they are higher than the
//           │  ┌──┬─╌╌╌╌╌╌╌╌╌┐                  space above the line once it is lifted
//           │  │  │▁▁▁▁┌─────┤
//           │──┘       └─────┘
//           └───────s───────────► slots
//
// Every other dive (every eighth of very large instances) aims at the lower bound itself. The others aim at a height
// between the bound and the best known height. That height drops after a success and approaches the best height with
// each failure.
//
// One dive costs O(n log n) at worst, the update after it O(n + blamed * log n). Decisions depend only on the seed and
// on counts. Not thread-safe: use one per thread. `timeline`, `index` and `skyline` must outlive it.
class SqueakyWheel {
 public:
  SqueakyWheel(const Timeline& timeline, const ArcIndex& index, Skyline* skyline, uint64_t seed);

  // How far a block may advance at once: small steps keep more of the order, large ones leave it sooner.
  enum class Steps { kSmall, kLarge };

  // Restarts from these scores (higher: earlier), one per block.
  void Begin(const std::vector<double>& scores, Steps kind = Steps::kSmall);

  // Makes one dive. `height`: of the best known placement, above lower_bound. Returns true if it found a lower one,
  // which is then in *placement. Otherwise *placement is meaningless. O(n log n).
  bool Dive(Bytes lower_bound, Bytes height, StopCheck* stop, Placement* placement);

  // The current scores; after a success, those that led to it.
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
  double aim_ = 0;      // the height aimed at, as a fraction of the distance from the bound to the best
  uint64_t dives_ = 0;  // since Begin()
  std::vector<double> scores_;
  std::vector<float> steps_;  // by block: the maximum raise of its score next time
  std::vector<int32_t> order_;
  std::vector<int32_t> ranks_;
  std::vector<int32_t> blamed_;
};

}  // namespace hotpack
