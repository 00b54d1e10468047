#include "packer/candidate_tree.h"

#include <algorithm>
#include <limits>

#include "packer/radix_sort.h"

namespace hotpack {
namespace {

// Moves bit i to bit 2i.
uint64_t Spread(uint32_t number) {
  uint64_t bits = number;
  bits = (bits | bits << 16) & 0x0000FFFF0000FFFF;
  bits = (bits | bits << 8) & 0x00FF00FF00FF00FF;
  bits = (bits | bits << 4) & 0x0F0F0F0F0F0F0F0F;
  bits = (bits | bits << 2) & 0x3333333333333333;
  bits = (bits | bits << 1) & 0x5555555555555555;
  return bits;
}

std::vector<int32_t> AlongZCurve(const std::vector<Arc>& arcs) {
  std::vector<KeyedIndex> keyed(arcs.size());
  for (size_t i = 0; i < arcs.size(); ++i) {
    const uint64_t key = Spread(static_cast<uint32_t>(arcs[i].begin)) << 1 | Spread(static_cast<uint32_t>(arcs[i].end));
    keyed[i] = {key, static_cast<int32_t>(i)};
  }
  std::vector<KeyedIndex> scratch;
  StableSortByKey(&keyed, &scratch);
  std::vector<int32_t> order(arcs.size());
  for (size_t i = 0; i < arcs.size(); ++i) order[i] = keyed[i].index;
  return order;
}

}  // namespace

CandidateTree::CandidateTree(const Timeline& timeline)
    : timeline_(timeline), slots_(timeline.slots), arc_of_leaf_(AlongZCurve(timeline.arcs)) {
  leaf_of_arc_.resize(arc_of_leaf_.size());
  for (size_t leaf = 0; leaf < arc_of_leaf_.size(); ++leaf) {
    leaf_of_arc_[arc_of_leaf_[leaf]] = static_cast<int32_t>(leaf);
  }
  int32_t start = 0;
  auto below = static_cast<int32_t>(std::max(arc_of_leaf_.size(), size_t{1}));
  do {
    level_starts_.push_back(start);
    below = (below + 3) / 4;
    start += below;
  } while (below > 1);
  nodes_.resize(start);
  for (int32_t block = 0; block < timeline.blocks(); ++block) {
    for (int32_t arc = timeline.arc_starts[block]; arc < timeline.arc_starts[block + 1]; ++arc) {
      nodes_[leaf_of_arc_[arc] / 4].block[leaf_of_arc_[arc] % 4] = block;
    }
  }
  FindExtents();
}

void CandidateTree::FindExtents() {
  constexpr int32_t kMost = std::numeric_limits<int32_t>::max();
  extents_.assign(nodes_.size(), {{kMost, kMost, kMost, kMost}, {-1, -1, -1, -1}});
  for (size_t leaf = 0; leaf < arc_of_leaf_.size(); ++leaf) {
    const Arc& arc = timeline_.arcs[arc_of_leaf_[leaf]];
    size_t index = leaf;
    for (const int32_t start : level_starts_) {
      Extent& extent = extents_[static_cast<size_t>(start) + index / 4];
      extent.min_begin[index % 4] = std::min(extent.min_begin[index % 4], arc.begin);
      extent.max_end[index % 4] = std::max(extent.max_end[index % 4], arc.end);
      index /= 4;
    }
  }
}

void CandidateTree::Clear(Node* node, int32_t lane) const {
  node->max_rank[lane] = -1;
  node->min_end[lane] = std::numeric_limits<int32_t>::max();
  node->max_begin[lane] = -1;
}

bool CandidateTree::Pull(const Node& below, Node* above, int32_t lane) {
  const auto highest = [](const int32_t(&of)[4]) { return std::max(std::max(of[0], of[1]), std::max(of[2], of[3])); };
  const auto lowest = [](const int32_t(&of)[4]) { return std::min(std::min(of[0], of[1]), std::min(of[2], of[3])); };
  const int32_t max_rank = highest(below.max_rank);
  const int32_t min_end = lowest(below.min_end);
  const int32_t max_begin = highest(below.max_begin);
  if (above->max_rank[lane] == max_rank && above->min_end[lane] == min_end && above->max_begin[lane] == max_begin) {
    return false;
  }
  above->max_rank[lane] = max_rank;
  above->min_end[lane] = min_end;
  above->max_begin[lane] = max_begin;
  return true;
}

void CandidateTree::Reset(std::span<const int32_t> ranks) {
  begins_.assign(slots_, {std::numeric_limits<int32_t>::max(), 0});
  for (const Arc& arc : timeline_.arcs) {
    Begin& begin = begins_[arc.begin];
    begin.min_end = std::min(begin.min_end, arc.end);
    ++begin.left;
  }
  const auto arcs = static_cast<int32_t>(arc_of_leaf_.size());
  const auto nodes_on = [&](size_t level) {
    const size_t end = level + 1 < level_starts_.size() ? static_cast<size_t>(level_starts_[level + 1]) : nodes_.size();
    return static_cast<int32_t>(end) - level_starts_[level];
  };
  for (int32_t leaf = 0; leaf < 4 * nodes_on(0); ++leaf) {
    Node& node = nodes_[leaf / 4];
    const int32_t lane = leaf % 4;
    if (leaf >= arcs) {
      Clear(&node, lane);
      continue;
    }
    const Arc& arc = timeline_.arcs[arc_of_leaf_[leaf]];
    node.max_rank[lane] = ranks[node.block[lane]];
    node.min_end[lane] = arc.end;
    node.max_begin[lane] = arc.begin;
  }
  for (size_t level = 1; level < level_starts_.size(); ++level) {
    Node* const above = nodes_.data() + level_starts_[level];
    const Node* const below = nodes_.data() + level_starts_[level - 1];
    for (int32_t i = 0; i < 4 * nodes_on(level); ++i) {
      if (i < nodes_on(level - 1)) {
        Pull(below[i], &above[i / 4], i % 4);
      } else {
        Clear(&above[i / 4], i % 4);
      }
    }
  }
}

void CandidateTree::Remove(int32_t block) {
  for (int32_t arc = timeline_.arc_starts[block]; arc < timeline_.arc_starts[block + 1]; ++arc) {
    int32_t index = leaf_of_arc_[arc];
    if (nodes_[index / 4].max_rank[index % 4] < 0) return;
    --begins_[timeline_.arcs[arc].begin].left;
    Clear(&nodes_[index / 4], index % 4);
    for (size_t level = 1; level < level_starts_.size(); ++level) {
      index /= 4;
      // If a node does not change, no node above it does.
      if (!Pull(nodes_[level_starts_[level - 1] + index], &nodes_[level_starts_[level] + index / 4], index % 4)) break;
    }
  }
}

}  // namespace hotpack
