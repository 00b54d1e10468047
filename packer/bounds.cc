#include "packer/bounds.h"

#include <algorithm>
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

Bytes LowerBound(const Instance& instance) {
  Bytes bound = MaxLoad(instance);
  for (const Block& block : instance.blocks) {
    if (block.pinned != kNotPinned) bound = std::max(bound, block.pinned + block.size);
  }
  return bound;
}

}  // namespace hotpack
