#include "packer/best_fit.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace hotpack {
namespace {

// Slots count on past the ring's length, clock values past the end of time.
Clock ClockOfSlot(const Timeline& timeline, int32_t slot) {
  if (slot < static_cast<int32_t>(timeline.clocks.size())) return timeline.clocks[slot];
  return timeline.clocks[slot - timeline.slots] + (timeline.clocks.back() - timeline.clocks.front());
}

}  // namespace

std::vector<int32_t> BestFitRanks(const Timeline& timeline) {
  std::vector<int32_t> order(timeline.blocks());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    if (timeline.lifetimes[a] != timeline.lifetimes[b]) return timeline.lifetimes[a] > timeline.lifetimes[b];
    if (timeline.sizes[a] != timeline.sizes[b]) return timeline.sizes[a] > timeline.sizes[b];
    return a < b;
  });
  std::vector<int32_t> ranks(order.size());
  int32_t rank = timeline.blocks();
  for (int32_t block : order) ranks[block] = --rank;
  return ranks;
}

Placement PackBestFit(const Instance& instance, std::vector<BestFitStep>* steps) {
  Placement placement;
  if (instance.blocks.empty()) return placement;
  const Timeline timeline = MakeTimeline(instance);
  Skyline skyline(timeline);
  StopCheck never(std::numeric_limits<int64_t>::max(), nullptr);
  std::vector<SkylineStep> slot_steps;
  skyline.Dive(BestFitRanks(timeline), std::numeric_limits<Bytes>::max(), &never, &placement.offsets, &placement.height,
               steps != nullptr ? &slot_steps : nullptr);
  for (const SkylineStep& step : slot_steps) {
    steps->push_back({step.block >= 0 ? BestFitStep::kPlace : BestFitStep::kLift,
                      ClockOfSlot(timeline, step.line_begin), ClockOfSlot(timeline, step.line_end), step.height,
                      step.block, step.to});
  }
  return placement;
}

}  // namespace hotpack
