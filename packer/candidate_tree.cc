#include "packer/candidate_tree.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

namespace hotpack {

CandidateTree::CandidateTree(const Timeline& timeline) : timeline_(timeline), slots_(timeline.slots) {
  const int32_t arcs = static_cast<int32_t>(timeline.arcs.size());
  leaves_ = static_cast<int32_t>(std::bit_ceil(static_cast<uint32_t>(std::max(arcs, 1))));
  nodes_.resize(2 * static_cast<size_t>(leaves_));
  std::vector<int32_t> order(arcs);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    const Arc& left = timeline.arcs[a];
    const Arc& right = timeline.arcs[b];
    // Equal begins: short arcs first. Any order is right; the index makes it the same everywhere.
    if (left.begin != right.begin) return left.begin < right.begin;
    if (left.end != right.end) return left.end < right.end;
    return a < b;
  });
  std::vector<int32_t> block_of_arc(arcs);
  for (int32_t block = 0; block < timeline.blocks(); ++block) {
    for (int32_t arc = timeline.arc_starts[block]; arc < timeline.arc_starts[block + 1]; ++arc) {
      block_of_arc[arc] = block;
    }
  }
  leaf_blocks_.resize(arcs);
  leaf_ends_.resize(arcs);
  leaf_of_arc_.resize(arcs);
  first_leaf_.assign(static_cast<size_t>(slots_) + 1, arcs);
  for (int32_t leaf = arcs - 1; leaf >= 0; --leaf) {
    const int32_t arc = order[leaf];
    leaf_blocks_[leaf] = block_of_arc[arc];
    leaf_ends_[leaf] = timeline.arcs[arc].end;
    leaf_of_arc_[arc] = leaf;
    first_leaf_[timeline.arcs[arc].begin] = leaf;
  }
  for (int32_t slot = slots_ - 1; slot >= 0; --slot) {
    first_leaf_[slot] = std::min(first_leaf_[slot], first_leaf_[slot + 1]);
  }
}

void CandidateTree::Reset(std::span<const int32_t> ranks) {
  const int32_t arcs = static_cast<int32_t>(leaf_blocks_.size());
  for (int32_t leaf = 0; leaf < arcs; ++leaf) {
    nodes_[leaves_ + leaf] = {ranks[leaf_blocks_[leaf]], leaf_ends_[leaf]};
  }
  for (int32_t leaf = arcs; leaf < leaves_; ++leaf) {
    nodes_[leaves_ + leaf] = {-1, std::numeric_limits<int32_t>::max()};
  }
  for (int32_t node = leaves_ - 1; node >= 1; --node) Pull(node);
}

void CandidateTree::Remove(int32_t block) {
  for (int32_t arc = timeline_.arc_starts[block]; arc < timeline_.arc_starts[block + 1]; ++arc) {
    int32_t node = leaf_of_arc_[arc] + leaves_;
    nodes_[node] = {-1, std::numeric_limits<int32_t>::max()};
    for (node /= 2; node >= 1; node /= 2) Pull(node);
  }
}

}  // namespace hotpack
