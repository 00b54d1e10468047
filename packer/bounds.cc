#include "packer/bounds.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

namespace hotpack {

Bytes MaxLoad(const Instance& instance) {
  std::vector<std::pair<Clock, Bytes>> changes;
  changes.reserve(instance.blocks.size() * 2);
  for (const Block& block : instance.blocks) {
    for (const Residency& residency : block.residency) {
      changes.emplace_back(residency.begin, block.size);
      changes.emplace_back(residency.end, -block.size);
    }
  }
  // At equal clock values the releases come first: intervals are half-open.
  std::sort(changes.begin(), changes.end());
  Bytes load = 0;
  Bytes max_load = 0;
  for (const auto& [clock, change] : changes) {
    load += change;
    max_load = std::max(max_load, load);
  }
  return max_load;
}

namespace {

// Returns the alignments for which some counting block has a size between two multiples; of many, the largest.
std::vector<Bytes> AlignmentsThatLeaveGaps(const Timeline& timeline) {
  constexpr size_t kMax = 8;
  std::vector<Bytes> all = timeline.alignments;
  std::sort(all.begin(), all.end(), std::greater<>());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  std::vector<Bytes> found;
  for (Bytes alignment : all) {
    if (alignment == 1 || found.size() == kMax) break;
    for (int32_t block = 0; block < timeline.blocks(); ++block) {
      if (timeline.alignments[block] % alignment != 0 || timeline.sizes[block] % alignment == 0) continue;
      found.push_back(alignment);
      break;
    }
  }
  return found;
}

// Goes round the ring with two values of the resident blocks: the sum of their padded sizes, and their paddings.
Bytes LargestAlignedLoad(const Timeline& timeline, Bytes alignment) {
  struct Change {
    int32_t slot;
    bool arrives;  // departures sort first
    int32_t block;
  };
  std::vector<Change> changes;
  const auto add = [&](int32_t begin, int32_t end, int32_t block) {
    changes.push_back({begin, true, block});
    changes.push_back({end, false, block});
  };
  for (int32_t block = 0; block < timeline.blocks(); ++block) {
    if (timeline.alignments[block] % alignment != 0) continue;
    for (const Arc& arc : timeline.arcs_of(block)) {
      add(arc.begin, std::min(arc.end, timeline.slots), block);
      if (arc.end > timeline.slots) add(0, arc.end - timeline.slots, block);
    }
  }
  std::sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
    return a.slot != b.slot ? a.slot < b.slot : a.arrives < b.arrives;
  });
  Bytes load = 0;
  Bytes largest = 0;
  std::multiset<Bytes> paddings;
  for (const Change& change : changes) {
    const Bytes size = timeline.sizes[change.block];
    const Bytes padding = (alignment - size % alignment) % alignment;
    if (change.arrives) {
      load += size + padding;
      paddings.insert(padding);
      largest = std::max(largest, load - *paddings.rbegin());
    } else {
      load -= size + padding;
      paddings.erase(paddings.find(padding));
    }
  }
  return largest;
}

}  // namespace

Bytes LowerBound(const Timeline& timeline) {
  Bytes bound = *std::max_element(timeline.loads.begin(), timeline.loads.end());
  for (int32_t block = 0; block < timeline.blocks(); ++block) {
    if (timeline.pins[block] != kNotPinned) bound = std::max(bound, timeline.pins[block] + timeline.sizes[block]);
  }
  for (Bytes alignment : AlignmentsThatLeaveGaps(timeline)) {
    bound = std::max(bound, LargestAlignedLoad(timeline, alignment));
  }
  return bound;
}

Bytes LowerBound(const Instance& instance) { return instance.blocks.empty() ? 0 : LowerBound(MakeTimeline(instance)); }

Bytes HeightUnit(const Timeline& timeline) {
  Bytes unit = 0;
  for (int32_t block = 0; block < timeline.blocks(); ++block) {
    unit = std::gcd(unit, timeline.sizes[block]);
    if (timeline.pins[block] != kNotPinned) unit = std::gcd(unit, timeline.pins[block]);
  }
  for (bool changed = true; changed;) {  // a smaller unit may no longer be a multiple of an earlier alignment
    changed = false;
    for (Bytes alignment : timeline.alignments) {
      if (alignment % unit == 0 || unit % alignment == 0) continue;
      unit = std::gcd(unit, alignment);
      changed = true;
    }
  }
  return unit;
}

}  // namespace hotpack
