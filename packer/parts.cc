#include "packer/parts.h"

#include <algorithm>
#include <numeric>

namespace hotpack {
namespace {

std::vector<char> FindFloor(const Timeline& timeline, Split* split) {
  std::vector<char> on_floor(timeline.blocks(), 0);
  for (int32_t block = 0; block < timeline.blocks(); ++block) {
    if (timeline.pins[block] != kNotPinned) return on_floor;
  }
  std::vector<Bytes> alignments = timeline.alignments;
  std::sort(alignments.begin(), alignments.end());
  alignments.erase(std::unique(alignments.begin(), alignments.end()), alignments.end());
  for (int32_t block = 0; block < timeline.blocks(); ++block) {
    const Bytes size = timeline.sizes[block];
    if (!timeline.AlwaysResident(block)) continue;
    if (!std::all_of(alignments.begin(), alignments.end(), [&](Bytes a) { return size % a == 0; })) continue;
    on_floor[block] = 1;
    split->floor.push_back(block);
    split->floor_height += size;
  }
  return on_floor;
}

// Union by the smallest, with path halving.
int32_t Root(std::vector<int32_t>* parents, int32_t at) {
  while ((*parents)[at] != at) at = (*parents)[at] = (*parents)[(*parents)[at]];
  return at;
}

}  // namespace

Split SplitInstance(const Timeline& timeline) {
  Split split;
  const std::vector<char> on_floor = FindFloor(timeline, &split);
  // covered[s]: some block of a part is resident at slot s and at the next one.
  std::vector<int32_t> change(timeline.slots + 1, 0);
  const auto cover = [&](int32_t begin, int32_t end) {
    ++change[begin];
    --change[end];
  };
  std::vector<int32_t> parents(timeline.slots);
  std::iota(parents.begin(), parents.end(), 0);
  const auto join = [&](int32_t a, int32_t b) {
    a = Root(&parents, a);
    b = Root(&parents, b);
    parents[std::max(a, b)] = std::min(a, b);
  };
  for (int32_t block = 0; block < timeline.blocks(); ++block) {
    if (on_floor[block] != 0) continue;
    const auto arcs = timeline.arcs_of(block);
    for (const Arc& arc : arcs) {
      cover(arc.begin, std::min(arc.end, timeline.slots) - 1);
      if (arc.end > timeline.slots) {
        cover(0, arc.end - timeline.slots - 1);
        join(timeline.slots - 1, 0);
      }
      join(arcs.front().begin, arc.begin);
    }
  }
  int32_t covering = 0;
  for (int32_t slot = 0; slot + 1 < timeline.slots; ++slot) {
    covering += change[slot];
    if (covering > 0) join(slot, slot + 1);
  }
  std::vector<int32_t> part_of_root(timeline.slots, -1);
  for (int32_t block = 0; block < timeline.blocks(); ++block) {
    if (on_floor[block] != 0) continue;
    int32_t& part = part_of_root[Root(&parents, timeline.arcs_of(block).front().begin)];
    if (part < 0) {
      part = static_cast<int32_t>(split.parts.size());
      split.parts.emplace_back();
    }
    split.parts[part].push_back(block);
  }
  return split;
}

Instance Subset(const Instance& instance, const std::vector<int32_t>& blocks) {
  Instance subset;
  subset.blocks.reserve(blocks.size());
  for (int32_t block : blocks) subset.blocks.push_back(instance.blocks[block]);
  return subset;
}

}  // namespace hotpack
