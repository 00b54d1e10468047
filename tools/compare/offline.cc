#include "tools/compare/offline.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <vector>

#include "tools/compare/smallest_gap.h"

namespace hotpack {
namespace {

std::vector<int32_t> AllBlocks(const Instance& instance) {
  std::vector<int32_t> order(instance.blocks.size());
  std::iota(order.begin(), order.end(), 0);
  return order;
}

const Block& BlockAt(const Instance& instance, int32_t index) { return instance.blocks[static_cast<size_t>(index)]; }

Clock LifetimeOf(const Block& block) {
  Clock lifetime = 0;
  for (const Residency& residency : block.residency) lifetime += residency.end - residency.begin;
  return lifetime;
}

}  // namespace

Placement PackAsTflite(const Instance& instance) {
  Clock first = INT64_MAX, last = INT64_MIN;
  for (const Block& block : instance.blocks) {
    first = std::min(first, block.residency.front().begin);
    last = std::max(last, block.residency.back().end);
  }
  auto key = [&instance, first, last](int32_t index) {
    const Block& block = BlockAt(instance, index);
    const bool always = LifetimeOf(block) == last - first;
    return std::make_tuple(!always, -block.size, block.residency.front().begin, index);
  };
  std::vector<int32_t> order = AllBlocks(instance);
  std::sort(order.begin(), order.end(), [&key](int32_t a, int32_t b) { return key(a) < key(b); });
  return PlaceInSmallestGaps(instance, order);
}

Placement PackAsXla(const Instance& instance) {
  std::vector<Clock> lifetimes;
  for (const Block& block : instance.blocks) lifetimes.push_back(LifetimeOf(block));
  auto lifetime = [&lifetimes](int32_t index) { return lifetimes[static_cast<size_t>(index)]; };
  std::vector<int32_t> order = AllBlocks(instance);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return std::make_tuple(-BlockAt(instance, a).size, -lifetime(a), a) <
           std::make_tuple(-BlockAt(instance, b).size, -lifetime(b), b);
  });
  Placement by_size = PlaceInSmallestGaps(instance, order);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return std::make_tuple(-lifetime(a), -BlockAt(instance, a).size, a) <
           std::make_tuple(-lifetime(b), -BlockAt(instance, b).size, b);
  });
  Placement by_lifetime = PlaceInSmallestGaps(instance, order);
  return by_lifetime.height < by_size.height ? by_lifetime : by_size;
}

}  // namespace hotpack
