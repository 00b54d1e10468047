#include "packer/validator.h"

#include <algorithm>
#include <limits>
#include <map>
#include <vector>

namespace hotpack {
namespace {

std::string BlockName(size_t block) { return "block " + std::to_string(block); }

std::string Range(Offset offset, Bytes size) {
  std::string text = "[";
  return text.append(std::to_string(offset)).append(", ").append(std::to_string(offset + size)).append(")");
}

// What can be said about one block by itself.
std::string BlockFault(const Block& block, Offset offset) {
  if (block.size <= 0) return "has size " + std::to_string(block.size);
  if (block.alignment < 1) return "has alignment " + std::to_string(block.alignment);
  if (block.residency.empty()) return "has no residency";
  for (size_t i = 0; i < block.residency.size(); ++i) {
    if (block.residency[i].begin >= block.residency[i].end) return "has an empty residency interval";
    if (i > 0 && block.residency[i].begin < block.residency[i - 1].end) {
      return "has residency intervals that overlap or are out of order";
    }
  }
  if (offset < 0) return "has the negative offset " + std::to_string(offset);
  if (offset > std::numeric_limits<Offset>::max() - block.size) return "ends beyond the largest offset";
  if (offset % block.alignment != 0) {
    return "has offset " + std::to_string(offset) + ", not a multiple of " + std::to_string(block.alignment);
  }
  if (block.pinned != kNotPinned && offset != block.pinned) {
    return "has offset " + std::to_string(offset) + ", but is pinned at " + std::to_string(block.pinned);
  }
  return "";
}

struct Change {
  Clock clock;
  bool arrives;  // departures sort first: intervals are half-open
  size_t block;

  bool operator<(const Change& other) const {
    if (clock != other.clock) return clock < other.clock;
    if (arrives != other.arrives) return other.arrives;
    return block < other.block;
  }
};

// Walks through time with the resident blocks in a map by offset: a new block may only touch its two neighbours there.
std::string FirstCollision(const Instance& instance, const Placement& placement) {
  std::vector<Change> changes;
  for (size_t block = 0; block < instance.blocks.size(); ++block) {
    for (const Residency& residency : instance.blocks[block].residency) {
      changes.push_back({residency.begin, true, block});
      changes.push_back({residency.end, false, block});
    }
  }
  std::sort(changes.begin(), changes.end());
  std::map<Offset, size_t> resident;
  const auto fault = [&](size_t a, size_t b, Clock clock) {
    return BlockName(std::min(a, b)) + " and " + BlockName(std::max(a, b)) + " overlap at clock " +
           std::to_string(clock) + ": " +
           Range(placement.offsets[std::min(a, b)], instance.blocks[std::min(a, b)].size) + " and " +
           Range(placement.offsets[std::max(a, b)], instance.blocks[std::max(a, b)].size);
  };
  for (const Change& change : changes) {
    const Offset offset = placement.offsets[change.block];
    if (!change.arrives) {
      resident.erase(offset);
      continue;
    }
    const auto above = resident.lower_bound(offset);
    if (above != resident.end() && above->first < offset + instance.blocks[change.block].size) {
      return fault(above->second, change.block, change.clock);
    }
    if (above != resident.begin()) {
      const auto below = std::prev(above);
      if (below->first + instance.blocks[below->second].size > offset) {
        return fault(below->second, change.block, change.clock);
      }
    }
    resident.emplace_hint(above, offset, change.block);
  }
  return "";
}

}  // namespace

std::string Validate(const Instance& instance, const Placement& placement) {
  if (placement.offsets.size() != instance.blocks.size()) {
    return "the placement has " + std::to_string(placement.offsets.size()) + " offsets for " +
           std::to_string(instance.blocks.size()) + " blocks";
  }
  Bytes height = 0;
  for (size_t block = 0; block < instance.blocks.size(); ++block) {
    const std::string fault = BlockFault(instance.blocks[block], placement.offsets[block]);
    if (!fault.empty()) return BlockName(block) + " " + fault;
    height = std::max(height, placement.offsets[block] + instance.blocks[block].size);
  }
  if (placement.height != height) {
    return "the height is given as " + std::to_string(placement.height) + ", but the highest block ends at " +
           std::to_string(height);
  }
  return FirstCollision(instance, placement);
}

}  // namespace hotpack
