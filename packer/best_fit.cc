#include "packer/best_fit.h"

#include <cstdint>
#include <limits>

#include "packer/radix_sort.h"

namespace hotpack {
namespace {

// Slots may exceed the ring's length; clock values then exceed the end of time.
Clock ClockOfSlot(const Timeline& timeline, int32_t slot) {
  if (slot < static_cast<int32_t>(timeline.clocks.size())) return timeline.clocks[slot];
  return timeline.clocks[slot - timeline.slots] + (timeline.clocks.back() - timeline.clocks.front());
}

}  // namespace

std::vector<int32_t> BestFitRanks(const Timeline& timeline) {
  // Stable sorts, the least important criterion first.
  std::vector<KeyedIndex> order(timeline.sizes.size());
  std::vector<KeyedIndex> scratch;
  for (int32_t block = 0; block < timeline.blocks(); ++block) {
    order[block] = {~static_cast<uint64_t>(timeline.sizes[block]), block};
  }
  StableSortByKey(&order, &scratch);
  for (KeyedIndex& item : order) item.key = ~static_cast<uint64_t>(timeline.lifetimes[item.index]);
  StableSortByKey(&order, &scratch);
  std::vector<int32_t> ranks(order.size());
  int32_t rank = timeline.blocks();
  for (const KeyedIndex& item : order) ranks[item.index] = --rank;
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
