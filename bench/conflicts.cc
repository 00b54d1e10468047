#include "bench/conflicts.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "packer/first_fit.h"
#include "packer/stop.h"

namespace hotpack::bench {

std::vector<int64_t> CountConflicts(const Instance& instance) {
  std::vector<Clock> begins, ends;
  for (const Block& block : instance.blocks) {
    for (const Residency& residency : block.residency) {
      begins.push_back(residency.begin);
      ends.push_back(residency.end);
    }
  }
  std::sort(begins.begin(), begins.end());
  std::sort(ends.begin(), ends.end());
  std::vector<int64_t> conflicts;
  conflicts.reserve(instance.blocks.size());
  for (const Block& block : instance.blocks) {
    int64_t count = 0;
    for (const Residency& residency : block.residency) {
      const auto begun = std::lower_bound(begins.begin(), begins.end(), residency.end) - begins.begin();
      const auto ended = std::upper_bound(ends.begin(), ends.end(), residency.begin) - ends.begin();
      count += begun - ended - 1;  // without itself
    }
    conflicts.push_back(count);
  }
  return conflicts;
}

std::vector<std::vector<int32_t>> ListConflicts(const Instance& instance) {
  struct Entry {
    Residency residency;
    int32_t block;
  };
  std::vector<Entry> entries;
  for (size_t block = 0; block < instance.blocks.size(); ++block) {
    for (const Residency& residency : instance.blocks[block].residency)
      entries.push_back({residency, static_cast<int32_t>(block)});
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.residency.begin < b.residency.begin; });
  std::vector<std::vector<int32_t>> conflicts(instance.blocks.size());
  std::vector<Entry> live;
  for (const Entry& entry : entries) {
    std::erase_if(live, [&entry](const Entry& other) { return other.residency.end <= entry.residency.begin; });
    for (const Entry& other : live) {
      if (other.block == entry.block) continue;
      conflicts[static_cast<size_t>(other.block)].push_back(entry.block);
      conflicts[static_cast<size_t>(entry.block)].push_back(other.block);
    }
    live.push_back(entry);
  }
  for (std::vector<int32_t>& others : conflicts) {
    std::sort(others.begin(), others.end());
    others.erase(std::unique(others.begin(), others.end()), others.end());
  }
  return conflicts;
}

std::vector<int32_t> OrderBySize(const Instance& instance) {
  const std::vector<int64_t> conflicts = CountConflicts(instance);
  std::vector<int32_t> order(instance.blocks.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    const auto i = static_cast<size_t>(a), j = static_cast<size_t>(b);
    return std::make_tuple(-instance.blocks[i].size, -conflicts[i], a) <
           std::make_tuple(-instance.blocks[j].size, -conflicts[j], b);
  });
  return order;
}

Placement PlaceLowest(const Timeline& timeline, const std::vector<int32_t>& order) {
  FirstFit first_fit(timeline);
  StopCheck never(INT64_MAX, nullptr);
  Placement placement;
  first_fit.Place(order, INT64_MAX, &never, &placement.offsets, &placement.height);
  return placement;
}

TopTree::TopTree(int32_t slots) : slots_(slots) {
  while (leaves_ < slots) leaves_ *= 2;
  highest_.assign(2 * static_cast<size_t>(leaves_), 0);
  floor_.assign(2 * static_cast<size_t>(leaves_), 0);
}

Offset TopTree::Highest(size_t node, int32_t low, int32_t high, int32_t begin, int32_t end) const {
  if (end <= low || high <= begin) return 0;
  if (begin <= low && high <= end) return highest_[node];
  const int32_t middle = low + (high - low) / 2;
  return std::max(
      {floor_[node], Highest(2 * node, low, middle, begin, end), Highest(2 * node + 1, middle, high, begin, end)});
}

void TopTree::Raise(size_t node, int32_t low, int32_t high, int32_t begin, int32_t end, Offset top) {
  if (end <= low || high <= begin) return;
  highest_[node] = std::max(highest_[node], top);
  if (begin <= low && high <= end) {
    floor_[node] = std::max(floor_[node], top);
    return;
  }
  const int32_t middle = low + (high - low) / 2;
  Raise(2 * node, low, middle, begin, end, top);
  Raise(2 * node + 1, middle, high, begin, end, top);
}

}  // namespace hotpack::bench
