#include "packer/validator.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <vector>

#include "absl/container/btree_map.h"

namespace hotpack {
namespace {

// Under AddressSanitizer Abseil's tree checks its iterators, and needs an archive of Abseil for that, which a preloaded
// library cannot have.
#ifdef ABSL_HAVE_ADDRESS_SANITIZER
using BlocksByOffset = std::map<Offset, size_t>;
#else
using BlocksByOffset = absl::btree_map<Offset, size_t>;
#endif

std::string BlockName(size_t block) { return "block " + std::to_string(block); }

std::string Range(Offset offset, Bytes size) {
  std::string text = "[";
  return text.append(std::to_string(offset)).append(", ").append(std::to_string(offset + size)).append(")");
}

// Returns a fault of one block by itself.
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
  size_t block;

  bool operator<(const Change& other) const { return clock != other.clock ? clock < other.clock : block < other.block; }
};

void SortUnlessSorted(std::vector<Change>* changes) {
  if (!std::is_sorted(changes->begin(), changes->end())) std::sort(changes->begin(), changes->end());
}

// Goes through time with the resident blocks in a map by offset: a new block may touch only its two neighbours there.
std::string FirstCollision(const Instance& instance, const Placement& placement) {
  std::vector<Change> arrivals;
  std::vector<Change> departures;
  arrivals.reserve(instance.blocks.size());
  departures.reserve(instance.blocks.size());
  for (size_t block = 0; block < instance.blocks.size(); ++block) {
    for (const Residency& residency : instance.blocks[block].residency) {
      arrivals.push_back({residency.begin, block});
      departures.push_back({residency.end, block});
    }
  }
  SortUnlessSorted(&arrivals);
  SortUnlessSorted(&departures);
  BlocksByOffset resident;
  const auto fault = [&](size_t a, size_t b, Clock clock) {
    return BlockName(std::min(a, b)) + " and " + BlockName(std::max(a, b)) + " overlap at clock " +
           std::to_string(clock) + ": " +
           Range(placement.offsets[std::min(a, b)], instance.blocks[std::min(a, b)].size) + " and " +
           Range(placement.offsets[std::max(a, b)], instance.blocks[std::max(a, b)].size);
  };
  auto departure = departures.begin();  // every arriving block departs later, so this never reaches the end
  for (const Change& arrival : arrivals) {
    // Intervals are half-open: at equal clock values the departures come first.
    for (; departure->clock <= arrival.clock; ++departure) resident.erase(placement.offsets[departure->block]);
    const Offset offset = placement.offsets[arrival.block];
    const auto above = resident.lower_bound(offset);
    if (above != resident.end() && above->first < offset + instance.blocks[arrival.block].size) {
      return fault(above->second, arrival.block, arrival.clock);
    }
    if (above != resident.begin()) {
      const auto below = std::prev(above);
      if (below->first + instance.blocks[below->second].size > offset) {
        return fault(below->second, arrival.block, arrival.clock);
      }
    }
    resident.emplace_hint(above, offset, arrival.block);
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
