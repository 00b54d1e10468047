#include "packer/arc_index.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

namespace hotpack {

ArcIndex::ArcIndex(const Timeline& timeline) : slots_(timeline.slots) {
  const auto arcs = static_cast<int32_t>(timeline.arcs.size());
  leaves_ = static_cast<int32_t>(std::bit_ceil(static_cast<uint32_t>(std::max(arcs, 1))));
  std::vector<int32_t> owners(arcs);
  for (int32_t block = 0; block < timeline.blocks(); ++block) {
    std::fill(owners.begin() + timeline.arc_starts[block], owners.begin() + timeline.arc_starts[block + 1], block);
  }
  std::vector<int32_t> order(arcs);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return timeline.arcs[a].begin != timeline.arcs[b].begin ? timeline.arcs[a].begin < timeline.arcs[b].begin : a < b;
  });
  max_ends_.assign(2 * static_cast<size_t>(leaves_), std::numeric_limits<int32_t>::min());
  begins_.reserve(arcs);
  blocks_.reserve(arcs);
  for (int32_t leaf = 0; leaf < arcs; ++leaf) {
    begins_.push_back(timeline.arcs[order[leaf]].begin);
    blocks_.push_back(owners[order[leaf]]);
    max_ends_[leaves_ + leaf] = timeline.arcs[order[leaf]].end;
  }
  for (int32_t node = leaves_ - 1; node >= 1; --node) {
    max_ends_[node] = std::max(max_ends_[2 * node], max_ends_[2 * node + 1]);
  }
}

}  // namespace hotpack
