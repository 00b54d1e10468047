#include "packer/timeline.h"

#include <algorithm>
#include <bit>

namespace hotpack {
namespace {

std::vector<Clock> SortedEndpoints(const Instance& instance) {
  std::vector<Clock> clocks;
  clocks.reserve(instance.blocks.size() * 2);
  for (const Block& block : instance.blocks) {
    for (const Residency& residency : block.residency) {
      clocks.push_back(residency.begin);
      clocks.push_back(residency.end);
    }
  }
  std::sort(clocks.begin(), clocks.end());
  clocks.erase(std::unique(clocks.begin(), clocks.end()), clocks.end());
  return clocks;
}

int32_t SlotOf(const std::vector<Clock>& clocks, Clock clock) {
  return static_cast<int32_t>(std::lower_bound(clocks.begin(), clocks.end(), clock) - clocks.begin());
}

// Appends the block's arcs; touching intervals become one, and so do the two at the ends of time.
void AppendArcs(const Block& block, const std::vector<Clock>& clocks, int32_t slots, std::vector<Arc>* arcs) {
  const size_t first = arcs->size();
  for (const Residency& residency : block.residency) {
    const Arc arc{SlotOf(clocks, residency.begin), SlotOf(clocks, residency.end)};
    if (arcs->size() > first && arcs->back().end == arc.begin) {
      arcs->back().end = arc.end;
    } else {
      arcs->push_back(arc);
    }
  }
  if (arcs->size() > first + 1 && (*arcs)[first].begin == 0 && arcs->back().end == slots) {
    arcs->back().end += (*arcs)[first].end;
    arcs->erase(arcs->begin() + static_cast<std::ptrdiff_t>(first));
  }
}

// The ring has a wall unless some block crosses from the last slot to the first.
void AddWallUnlessCrossed(Timeline* timeline) {
  const bool crossed = std::any_of(timeline->arcs.begin(), timeline->arcs.end(),
                                   [&](const Arc& arc) { return arc.end > timeline->slots; });
  timeline->walled = !crossed;
  if (timeline->walled) ++timeline->slots;
}

void SumLoads(Timeline* timeline) {
  timeline->loads.assign(timeline->slots, 0);
  std::vector<Bytes>& change = timeline->loads;
  for (int32_t block = 0; block < timeline->blocks(); ++block) {
    const Bytes size = timeline->sizes[block];
    for (const Arc& arc : timeline->arcs_of(block)) {
      change[arc.begin] += size;
      if (arc.end > timeline->slots) change[0] += size;
      const int32_t end = arc.end > timeline->slots ? arc.end - timeline->slots : arc.end;
      if (end < timeline->slots) change[end] -= size;
    }
  }
  Bytes load = 0;
  for (Bytes& at : timeline->loads) at = load += at;
}

// Answers "largest value in [begin, end)" in O(1) after O(m log m).
class RangeMax {
 public:
  explicit RangeMax(const std::vector<Bytes>& values) : levels_{values} {
    for (size_t width = 1; 2 * width <= values.size(); width *= 2) {
      const std::vector<Bytes>& below = levels_.back();
      std::vector<Bytes> level(values.size() - 2 * width + 1);
      for (size_t i = 0; i < level.size(); ++i) level[i] = std::max(below[i], below[i + width]);
      levels_.push_back(std::move(level));
    }
  }

  Bytes Max(int32_t begin, int32_t end) const {
    const int level = std::bit_width(static_cast<uint32_t>(end - begin)) - 1;
    return std::max(levels_[level][begin], levels_[level][end - (int32_t{1} << level)]);
  }

 private:
  std::vector<std::vector<Bytes>> levels_;
};

}  // namespace

Timeline MakeTimeline(const Instance& instance) {
  Timeline timeline;
  timeline.clocks = SortedEndpoints(instance);
  timeline.slots = static_cast<int32_t>(timeline.clocks.size()) - (timeline.clocks.empty() ? 0 : 1);
  const size_t blocks = instance.blocks.size();
  timeline.sizes.reserve(blocks);
  timeline.alignments.reserve(blocks);
  timeline.pins.reserve(blocks);
  timeline.lifetimes.reserve(blocks);
  timeline.arc_starts.reserve(blocks + 1);
  timeline.arcs.reserve(blocks);
  timeline.arc_starts.push_back(0);
  for (const Block& block : instance.blocks) {
    timeline.sizes.push_back(block.size);
    timeline.alignments.push_back(block.alignment);
    timeline.pins.push_back(block.pinned);
    Clock lifetime = 0;
    for (const Residency& residency : block.residency) lifetime += residency.end - residency.begin;
    timeline.lifetimes.push_back(lifetime);
    AppendArcs(block, timeline.clocks, timeline.slots, &timeline.arcs);
    timeline.arc_starts.push_back(static_cast<int32_t>(timeline.arcs.size()));
  }
  AddWallUnlessCrossed(&timeline);
  SumLoads(&timeline);
  return timeline;
}

std::vector<Bytes> LargestLoadsMet(const Timeline& timeline) {
  const RangeMax loads(timeline.loads);
  std::vector<Bytes> met(timeline.blocks(), 0);
  for (int32_t block = 0; block < timeline.blocks(); ++block) {
    for (const Arc& arc : timeline.arcs_of(block)) {
      met[block] = std::max(met[block], loads.Max(arc.begin, std::min(arc.end, timeline.slots)));
      if (arc.end > timeline.slots) met[block] = std::max(met[block], loads.Max(0, arc.end - timeline.slots));
    }
  }
  return met;
}

}  // namespace hotpack
