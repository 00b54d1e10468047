// CheckInstance(): checks every property that the solvers rely on.
#include <algorithm>
#include <map>
#include <vector>

#include "packer/pack.h"

namespace hotpack {
namespace {

constexpr Offset kLargest = Offset{1} << 62;

bool IsWellFormed(const Block& block) {
  if (block.size <= 0 || block.alignment < 1 || block.residency.empty()) return false;
  for (size_t i = 0; i < block.residency.size(); ++i) {
    if (block.residency[i].begin >= block.residency[i].end) return false;
    if (i > 0 && block.residency[i].begin < block.residency[i - 1].end) return false;
  }
  if (block.pinned == kNotPinned) return true;
  return block.pinned >= 0 && block.pinned % block.alignment == 0;
}

// Solvers may add up all sizes, plus less than one alignment per block.
bool Overflows(const Instance& instance) {
  Offset sum = 0;
  Offset highest_pin = 0;
  for (const Block& block : instance.blocks) {
    if (block.size > kLargest - sum) return true;
    sum += block.size;
    if (block.alignment - 1 > kLargest - sum) return true;
    sum += block.alignment - 1;
    if (block.pinned == kNotPinned) continue;
    if (block.pinned > kLargest - block.size) return true;
    highest_pin = std::max(highest_pin, block.pinned + block.size);
  }
  return highest_pin > kLargest - sum;
}

// Clock span and slot count must be representable, too.
bool ClocksOverflow(const Instance& instance) {
  size_t intervals = 0;
  for (const Block& block : instance.blocks) {
    intervals += block.residency.size();
    if (block.residency.front().begin < -kLargest / 2 || block.residency.back().end > kLargest / 2) return true;
  }
  return intervals >= size_t{1} << 29;
}

struct PinEvent {
  Clock clock;
  bool arrives;
  const Block* block;
};

bool PinsCollide(const Instance& instance) {
  std::vector<PinEvent> events;
  for (const Block& block : instance.blocks) {
    if (block.pinned == kNotPinned) continue;
    for (const Residency& residency : block.residency) {
      events.push_back({residency.begin, true, &block});
      events.push_back({residency.end, false, &block});
    }
  }
  std::sort(events.begin(), events.end(), [](const PinEvent& a, const PinEvent& b) {
    return a.clock != b.clock ? a.clock < b.clock : a.arrives < b.arrives;
  });
  std::map<Offset, Offset> tops;  // of the resident pinned blocks, by offset
  for (const PinEvent& event : events) {
    const Offset begin = event.block->pinned;
    const Offset end = begin + event.block->size;
    if (!event.arrives) {
      tops.erase(begin);
      continue;
    }
    const auto above = tops.lower_bound(begin);
    if (above != tops.end() && above->first < end) return true;
    if (above != tops.begin() && std::prev(above)->second > begin) return true;
    tops.emplace_hint(above, begin, end);
  }
  return false;
}

}  // namespace

PackStatus CheckInstance(const Instance& instance) {
  for (const Block& block : instance.blocks) {
    if (!IsWellFormed(block)) return PackStatus::kBadInstance;
  }
  if (Overflows(instance) || ClocksOverflow(instance)) return PackStatus::kOverflow;
  if (PinsCollide(instance)) return PackStatus::kBadInstance;
  return PackStatus::kOk;
}

}  // namespace hotpack
