#include "packer/load_tree.h"

#include <algorithm>
#include <bit>

namespace hotpack {

LoadTree::LoadTree(int32_t slots)
    : leaves_(static_cast<int32_t>(std::bit_ceil(static_cast<uint32_t>(std::max(slots, 1))))) {}

void LoadTree::Reset(const std::vector<Bytes>& values) {
  const auto slots = static_cast<int32_t>(values.size());
  nodes_.resize(2 * static_cast<size_t>(leaves_));
  for (int32_t leaf = 0; leaf < leaves_; ++leaf) nodes_[leaves_ + leaf] = {leaf < slots ? values[leaf] : 0, 0};
  for (int32_t node = leaves_ - 1; node >= 1; --node) {
    nodes_[node] = {std::max(nodes_[2 * node].max, nodes_[2 * node + 1].max), 0};
  }
}

void LoadTree::Add(int32_t begin, int32_t end, Bytes change) {
  int32_t left = begin + leaves_;
  int32_t right = end + leaves_;
  for (; left < right; left /= 2, right /= 2) {
    if (left & 1) AddTo(left++, change);
    if (right & 1) AddTo(--right, change);
  }
  PullAbove(begin + leaves_);
  PullAbove(end - 1 + leaves_);
}

Bytes LoadTree::At(int32_t slot) const {
  Bytes value = nodes_[slot + leaves_].max;
  for (int32_t node = (slot + leaves_) / 2; node >= 1; node /= 2) value += nodes_[node].added;
  return value;
}

void LoadTree::PullAbove(int32_t leaf) {
  for (int32_t node = leaf / 2; node >= 1; node /= 2) {
    nodes_[node].max = std::max(nodes_[2 * node].max, nodes_[2 * node + 1].max) + nodes_[node].added;
  }
}

// The node represents the slots [from, to). Descends only where the limit is exceeded somewhere.
bool LoadTree::AnyBelow(int32_t node, int32_t from, int32_t to, Bytes limit, int32_t begin, int32_t end) const {
  if (end <= from || to <= begin || nodes_[node].max <= limit) return false;
  if (begin <= from && to <= end) return true;
  limit -= nodes_[node].added;
  const int32_t middle = from + (to - from) / 2;
  return AnyBelow(2 * node, from, middle, limit, begin, end) || AnyBelow(2 * node + 1, middle, to, limit, begin, end);
}

int32_t LoadTree::FirstBelow(int32_t node, int32_t from, int32_t to, Bytes limit, int32_t begin, int32_t end) const {
  if (end <= from || to <= begin || nodes_[node].max <= limit) return -1;
  if (to - from == 1) return from;
  limit -= nodes_[node].added;
  const int32_t middle = from + (to - from) / 2;
  const int32_t first = FirstBelow(2 * node, from, middle, limit, begin, end);
  return first >= 0 ? first : FirstBelow(2 * node + 1, middle, to, limit, begin, end);
}

}  // namespace hotpack
