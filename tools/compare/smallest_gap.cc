#include "tools/compare/smallest_gap.h"

#include <algorithm>
#include <cstddef>

namespace hotpack {
namespace {

// The residencies of placed blocks, for queries by interval. A tree over all residencies by their begin: each node
// knows the last end among the placed ones below it.
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

  // Adds the placed blocks that are resident at some time in `residency`; possibly twice a block with several
  // residencies.
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

  // Of the entries [low, high) below `node`: visits those before `limit` that end after `begin`.
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

// The obstacles of one block, in ascending order. Many blocks of an iteration have the same size and share offsets. So
// keeping the different offsets in order is faster than sorting a block's obstacles each time.
class Obstacles {
 public:
  // Notes a block placed at `offset`. Returns the ordinal of that offset, for Add(). O(different offsets).
  uint32_t OrdinalOf(Offset offset) {
    auto found = std::lower_bound(ascending_.begin(), ascending_.end(), offset,
                                  [this](uint32_t ordinal, Offset value) { return columns_[ordinal].offset < value; });
    if (found != ascending_.end() && columns_[*found].offset == offset) return *found;
    const auto ordinal = static_cast<uint32_t>(columns_.size());
    columns_.push_back({offset, 0, 0});
    ascending_.insert(found, ordinal);
    return ordinal;
  }

  void Clear() {
    ++round_;
    added_.clear();
  }
  void Add(uint32_t ordinal, Offset top) {
    Column& column = columns_[ordinal];
    if (column.round == round_) {
      column.top = std::max(column.top, top);
      return;
    }
    column.top = top;
    column.round = round_;
    added_.push_back(ordinal);
  }

  // Returns the offset for `block` among the obstacles added since Clear().
  Offset SmallestGap(const Block& block) {
    const bool few = added_.size() * 16 < ascending_.size();
    if (few) {
      std::sort(added_.begin(), added_.end(),
                [this](uint32_t a, uint32_t b) { return columns_[a].offset < columns_[b].offset; });
    }
    Offset best = -1, best_gap = INT64_MAX, top = 0;
    for (uint32_t ordinal : few ? added_ : ascending_) {
      const Column& column = columns_[ordinal];
      if (column.round != round_) continue;
      if (column.offset > top) {
        const Offset from = RoundUp(top, block.alignment);
        if (from + block.size <= column.offset && column.offset - top < best_gap) {
          best = from;
          best_gap = column.offset - top;
        }
      }
      top = std::max(top, column.top);
    }
    return best >= 0 ? best : RoundUp(top, block.alignment);
  }

 private:
  // The blocks at one offset: the highest top of those added in this round.
  struct Column {
    Offset offset, top;
    uint64_t round;
  };
  std::vector<Column> columns_;      // by ordinal
  std::vector<uint32_t> ascending_;  // ordinals, by offset
  std::vector<uint32_t> added_;      // different ones
  uint64_t round_ = 0;
};

}  // namespace

Placement PlaceInSmallestGaps(const Instance& instance, const std::vector<int32_t>& order) {
  struct Place {
    uint32_t ordinal;
    Offset top;
  };
  PlacedResidencies placed(instance);
  Obstacles obstacles;
  Placement placement;
  placement.offsets.assign(instance.blocks.size(), 0);
  std::vector<Place> places(instance.blocks.size());
  std::vector<int32_t> meeting;
  for (int32_t index : order) {
    const Block& block = instance.blocks[static_cast<size_t>(index)];
    meeting.clear();
    for (const Residency& residency : block.residency) placed.Meeting(residency, &meeting);
    obstacles.Clear();
    for (int32_t other : meeting) {
      const Place& place = places[static_cast<size_t>(other)];
      obstacles.Add(place.ordinal, place.top);
    }
    const Offset offset = obstacles.SmallestGap(block);
    places[static_cast<size_t>(index)] = {obstacles.OrdinalOf(offset), offset + block.size};
    placement.offsets[static_cast<size_t>(index)] = offset;
    placement.height = std::max(placement.height, offset + block.size);
    placed.Add(index);
  }
  return placement;
}

}  // namespace hotpack
