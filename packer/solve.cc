#include "packer/solve.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "packer/best_fit.h"
#include "packer/bounds.h"
#include "packer/parts.h"
#include "packer/portfolio.h"
#include "packer/skyline.h"
#include "packer/stop.h"

namespace hotpack {
namespace {

void Publish(const Timeline& timeline, StopCheck* stop, SharedBest* best) {
  Placement placement;
  Skyline skyline(timeline);
  if (skyline.Dive(BestFitRanks(timeline), best->height() - 1, stop, &placement.offsets, &placement.height)) {
    best->Offer(&placement, AlgorithmName(Algorithm::kBestFit));
  }
}

// One part of a split instance.
struct Part {
  std::vector<int32_t> blocks;
  Instance instance;
  Timeline timeline;
  Solution solution;
  bool done = false;
};

// Solves an instance that consists of several parts. Parts take turns until all are done or time is up. Each gets an
// equal share of the remaining time.
class PartsSolver {
 public:
  PartsSolver(const Instance& instance, const Timeline& timeline, const PackOptions& options, Split split, Goal goal,
              int64_t deadline_ns)
      : timeline_(timeline), options_(options), split_(std::move(split)), goal_(goal), deadline_ns_(deadline_ns) {
    for (std::vector<int32_t>& blocks : split_.parts) {
      Part& part = parts_.emplace_back();
      part.instance = Subset(instance, blocks);
      part.timeline = MakeTimeline(part.instance);
      part.blocks = std::move(blocks);
      part.solution.incumbent.placement = Stacked(part.timeline);
      part.solution.incumbent.algorithm = "stacked";
      part.solution.lower = LowerBound(part.timeline);
    }
  }

  // Offers what it finds. Raises best's lower bound if a part proves more.
  void Run(SharedBest* best) {
    StopCheck stop(deadline_ns_, options_.cancel, options_.clock);
    for (const Part& part : parts_) best->RaiseLower(split_.floor_height + part.solution.lower);
    OfferWhole(best);
    for (uint64_t pass = 0; !best->done() && !stop.Now(); ++pass) {
      size_t left = CountUnfinished(best);
      if (left == 0) break;
      for (Part& part : parts_) {
        if (part.done || best->done()) continue;
        const int64_t now = NanosecondsOn(options_.clock);
        Improve(&part, pass, now + std::max<int64_t>(deadline_ns_ - now, 0) / static_cast<int64_t>(left--), best);
      }
      OfferWhole(best);
    }
  }

 private:
  // Returns the height that parts may reach without being the highest: the goal of the whole, less the floor.
  Bytes Enough(const SharedBest& best) const { return best.target() - split_.floor_height; }

  size_t CountUnfinished(SharedBest* best) {
    size_t left = 0;
    for (Part& part : parts_) {
      part.done = part.done || part.solution.incumbent.placement.height <= std::max(Enough(*best), part.solution.lower);
      left += part.done ? 0 : 1;
    }
    return left;
  }

  void Improve(Part* part, uint64_t pass, int64_t deadline_ns, SharedBest* best) {
    PackOptions options = options_;
    options.seed += pass << 32;
    const Goal goal{std::max<Bytes>(Enough(*best), 0), goal_.decide};
    part->solution = Solve(part->instance, part->timeline, options, std::move(part->solution.incumbent),
                           part->solution.lower, goal, deadline_ns);
    best->RaiseLower(split_.floor_height + part->solution.lower);
  }

  void OfferWhole(SharedBest* best) {
    Placement whole;
    whole.offsets.resize(timeline_.blocks());
    for (int32_t block : split_.floor) {
      whole.offsets[block] = whole.height;
      whole.height += timeline_.sizes[block];
    }
    const Offset base = whole.height;
    const char* algorithm = "floor";
    for (const Part& part : parts_) {
      const Placement& placement = part.solution.incumbent.placement;
      for (size_t i = 0; i < part.blocks.size(); ++i) whole.offsets[part.blocks[i]] = base + placement.offsets[i];
      if (base + placement.height <= whole.height) continue;
      whole.height = base + placement.height;
      algorithm = part.solution.incumbent.algorithm;
    }
    best->Offer(&whole, algorithm);
  }

  const Timeline& timeline_;
  const PackOptions& options_;
  Split split_;
  const Goal goal_;
  const int64_t deadline_ns_;
  std::vector<Part> parts_;
};

}  // namespace

Placement Stacked(const Timeline& timeline) {
  Placement placement;
  placement.offsets.resize(timeline.sizes.size());
  for (int32_t block = 0; block < timeline.blocks(); ++block) {
    if (timeline.pins[block] == kNotPinned) continue;
    placement.offsets[block] = timeline.pins[block];
    placement.height = std::max(placement.height, timeline.pins[block] + timeline.sizes[block]);
  }
  for (int32_t block = 0; block < timeline.blocks(); ++block) {
    if (timeline.pins[block] != kNotPinned) continue;
    placement.offsets[block] = RoundUp(placement.height, timeline.alignments[block]);
    placement.height = placement.offsets[block] + timeline.sizes[block];
  }
  return placement;
}

Solution Solve(const Instance& instance, const Timeline& timeline, const PackOptions& options, Incumbent start,
               Bytes lower, Goal goal, int64_t deadline_ns) {
  StopCheck stop(deadline_ns, options.cancel, options.clock);
  SharedBest best(std::move(start), lower, goal);
  if (!best.done()) Publish(timeline, &stop, &best);
  if (!best.done() && !stop.Now()) {
    Split split = SplitInstance(timeline);
    if (split.is_trivial()) {
      RunPortfolio(timeline, options, deadline_ns, &best);
    } else {
      PartsSolver(instance, timeline, options, std::move(split), goal, deadline_ns).Run(&best);
    }
  }
  const Bytes proved = best.lower();
  return {best.Take(), proved};
}

}  // namespace hotpack
