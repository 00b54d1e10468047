#include "tools/peers/smallest_gap.h"

#include <algorithm>

namespace hotpack {
namespace {

// The residencies of blocks that have been placed, to be asked which of them meet an interval. A tree over all residencies
// by their begin: each node knows the last end among the placed ones below it.
class PlacedResidencies {
 public:
  explicit PlacedResidencies(const Instance& instance) {
    for (size_t block = 0; block < instance.blocks.size(); ++block) {
      for (const Residency& residency : instance.blocks[block].residency) {
        entries_.push_back({residency, static_cast<int32_t>(block)});
      }
    }
    std::sort(entries_.begin(), entries_.end(),
              [](const Entry& a, const Entry& b) { return a.residency.begin < b.residency.begin; });
    while (leaves_ < entries_.size()) leaves_ *= 2;
    last_end_.assign(2 * leaves_, kNone);
    slots_.resize(instance.blocks.size());
    for (size_t i = 0; i < entries_.size(); ++i) slots_[static_cast<size_t>(entries_[i].block)].push_back(i);
  }

  void Add(int32_t block) {
    for (size_t slot : slots_[static_cast<size_t>(block)]) {
      size_t node = leaves_ + slot;
      last_end_[node] = entries_[slot].residency.end;
      while (node > 1) {
        node /= 2;
        last_end_[node] = std::max(last_end_[2 * node], last_end_[2 * node + 1]);
      }
    }
  }

  // Adds the placed blocks that are resident at some time in `residency`; one with several residencies perhaps twice.
  void Meeting(const Residency& residency, std::vector<int32_t>* blocks) const {
    const auto from_here = std::lower_bound(entries_.begin(), entries_.end(), residency.end,
                                            [](const Entry& entry, Clock end) { return entry.residency.begin < end; });
    Visit(1, 0, leaves_, static_cast<size_t>(from_here - entries_.begin()), residency.begin, blocks);
  }

 private:
  struct Entry {
    Residency residency;
    int32_t block;
  };
  static constexpr Clock kNone = INT64_MIN;

  // Of the entries [low, high) below `node`, those before `limit` that end after `begin`.
  void Visit(size_t node, size_t low, size_t high, size_t limit, Clock begin, std::vector<int32_t>* blocks) const {
    if (low >= limit || last_end_[node] == kNone || last_end_[node] <= begin) return;
    if (high - low == 1) {
      blocks->push_back(entries_[low].block);
      return;
    }
    const size_t middle = (low + high) / 2;
    Visit(2 * node, low, middle, limit, begin, blocks);
    Visit(2 * node + 1, middle, high, limit, begin, blocks);
  }

  std::vector<Entry> entries_;              // by begin
  std::vector<std::vector<size_t>> slots_;  // by block: its entries
  std::vector<Clock> last_end_;             // heap order
  size_t leaves_ = 1;
};

// The addresses [offset, top) of a placed block.
struct Place {
  Offset offset, top;
};

// `taken`: of the blocks in the way, ascending offsets.
Offset SmallestGap(const std::vector<Place>& taken, const Block& block) {
  Offset best = -1, best_gap = INT64_MAX, top = 0;
  for (const Place& place : taken) {
    if (place.offset > top) {
      const Offset from = RoundUp(top, block.alignment);
      if (from + block.size <= place.offset && place.offset - top < best_gap) {
        best = from;
        best_gap = place.offset - top;
      }
    }
    top = std::max(top, place.top);
  }
  return best >= 0 ? best : RoundUp(top, block.alignment);
}

}  // namespace

Placement PlaceInSmallestGaps(const Instance& instance, const std::vector<int32_t>& order) {
  PlacedResidencies placed(instance);
  Placement placement;
  placement.offsets.assign(instance.blocks.size(), 0);
  std::vector<Place> places(instance.blocks.size());  // those of placement, side by side
  std::vector<int32_t> meeting;
  std::vector<Place> taken;
  for (int32_t index : order) {
    const Block& block = instance.blocks[static_cast<size_t>(index)];
    meeting.clear();
    for (const Residency& residency : block.residency) placed.Meeting(residency, &meeting);
    taken.clear();
    for (int32_t other : meeting) taken.push_back(places[static_cast<size_t>(other)]);
    std::sort(taken.begin(), taken.end(), [](const Place& a, const Place& b) { return a.offset < b.offset; });
    const Offset offset = SmallestGap(taken, block);
    places[static_cast<size_t>(index)] = {offset, offset + block.size};
    placement.offsets[static_cast<size_t>(index)] = offset;
    placement.height = std::max(placement.height, offset + block.size);
    placed.Add(index);
  }
  return placement;
}

}  // namespace hotpack
