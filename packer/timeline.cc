#include "packer/timeline.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include "packer/radix_sort.h"

namespace hotpack {
namespace {

template <typename Visit>
void ForEachEndpoint(const Instance& instance, const Visit& visit) {
  for (const Block& block : instance.blocks) {
    for (const Residency& residency : block.residency) {
      visit(residency.begin);
      visit(residency.end);
    }
  }
}

// For each endpoint, block by block, its rank among the distinct clock values, which go to `clocks`, ascending.
class SlotNumbers {
 public:
  SlotNumbers(const Instance& instance, std::vector<Clock>* clocks) {
    Clock least = std::numeric_limits<Clock>::max();
    Clock most = std::numeric_limits<Clock>::min();
    size_t count = 0;
    ForEachEndpoint(instance, [&](Clock clock) {
      least = std::min(least, clock);
      most = std::max(most, clock);
      ++count;
    });
    numbers_.reserve(count);
    if (count == 0) return;
    // Usually every clock tick, or nearly every one, is an endpoint. Then a bit for each tick needs no more memory than
    // the endpoints themselves, and saves sorting them.
    if (static_cast<uint64_t>(most - least) < 64 * static_cast<uint64_t>(count)) {
      Mark(instance, least, most, clocks);
    } else {
      Sort(instance, least, count, clocks);
    }
  }

  const std::vector<int32_t>& numbers() const { return numbers_; }

 private:
  void Mark(const Instance& instance, Clock least, Clock most, std::vector<Clock>* clocks) {
    std::vector<uint64_t> marks(static_cast<size_t>(most - least) / 64 + 1);
    ForEachEndpoint(instance, [&](Clock clock) {
      const auto tick = static_cast<uint64_t>(clock - least);
      marks[tick / 64] |= uint64_t{1} << (tick % 64);
    });
    std::vector<int32_t> before(marks.size());  // how many are marked in the words before
    int32_t sum = 0;
    for (size_t word = 0; word < marks.size(); ++word) {
      before[word] = sum;
      sum += std::popcount(marks[word]);
    }
    clocks->reserve(sum);
    for (size_t word = 0; word < marks.size(); ++word) {
      for (uint64_t bits = marks[word]; bits != 0; bits &= bits - 1) {
        clocks->push_back(least + static_cast<Clock>(word * 64) + std::countr_zero(bits));
      }
    }
    ForEachEndpoint(instance, [&](Clock clock) {
      const auto tick = static_cast<uint64_t>(clock - least);
      const uint64_t lower = (uint64_t{1} << (tick % 64)) - 1;
      numbers_.push_back(before[tick / 64] + std::popcount(marks[tick / 64] & lower));
    });
  }

  void Sort(const Instance& instance, Clock least, size_t count, std::vector<Clock>* clocks) {
    std::vector<KeyedIndex> endpoints;
    endpoints.reserve(count);
    ForEachEndpoint(instance, [&](Clock clock) {
      endpoints.push_back({static_cast<uint64_t>(clock - least), static_cast<int32_t>(endpoints.size())});
    });
    std::vector<KeyedIndex> scratch;
    StableSortByKey(&endpoints, &scratch);
    numbers_.resize(count);
    for (const KeyedIndex& endpoint : endpoints) {
      const Clock clock = least + static_cast<Clock>(endpoint.key);
      if (clocks->empty() || clocks->back() != clock) clocks->push_back(clock);
      numbers_[endpoint.index] = static_cast<int32_t>(clocks->size()) - 1;
    }
  }

  std::vector<int32_t> numbers_;
};

// Appends the block's arcs. Adjacent intervals become one arc, as do the two at the ends of time. `number` points to
// the slot numbers of the block's endpoints.
void AppendArcs(const Block& block, const int32_t* number, int32_t slots, std::vector<Arc>* arcs) {
  const size_t first = arcs->size();
  for (size_t i = 0; i < block.residency.size(); ++i, number += 2) {
    const Arc arc{number[0], number[1]};
    if (arcs->size() > first && arcs->back().end == arc.begin) {
      arcs->back().end = arc.end;
    } else {
      arcs->push_back(arc);
    }
  }
  if (arcs->size() > first + 1 && (*arcs)[first].begin == 0 && arcs->back().end == slots) {
    arcs->back().end += (*arcs)[first].end;
    arcs->erase(arcs->begin() + static_cast<std::ptrdiff_t>(first));
  }
}

// The ring has a wall unless some block crosses from the last slot to the first.
void AddWallUnlessCrossed(Timeline* timeline) {
  const bool crossed = std::any_of(timeline->arcs.begin(), timeline->arcs.end(),
                                   [&](const Arc& arc) { return arc.end > timeline->slots; });
  timeline->walled = !crossed;
  if (timeline->walled) ++timeline->slots;
}

void SumLoads(Timeline* timeline) {
  timeline->loads.assign(timeline->slots, 0);
  std::vector<Bytes>& change = timeline->loads;
  for (int32_t block = 0; block < timeline->blocks(); ++block) {
    const Bytes size = timeline->sizes[block];
    for (const Arc& arc : timeline->arcs_of(block)) {
      change[arc.begin] += size;
      if (arc.end > timeline->slots) change[0] += size;
      const int32_t end = arc.end > timeline->slots ? arc.end - timeline->slots : arc.end;
      if (end < timeline->slots) change[end] -= size;
    }
  }
  Bytes load = 0;
  for (Bytes& at : timeline->loads) at = load += at;
}

// Answers "largest value in [begin, end)" in O(1) after O(m log m).
class RangeMax {
 public:
  explicit RangeMax(const std::vector<Bytes>& values) : levels_{values} {
    for (size_t width = 1; 2 * width <= values.size(); width *= 2) {
      const std::vector<Bytes>& below = levels_.back();
      std::vector<Bytes> level(values.size() - 2 * width + 1);
      for (size_t i = 0; i < level.size(); ++i) level[i] = std::max(below[i], below[i + width]);
      levels_.push_back(std::move(level));
    }
  }

  Bytes Max(int32_t begin, int32_t end) const {
    const int level = std::bit_width(static_cast<uint32_t>(end - begin)) - 1;
    return std::max(levels_[level][begin], levels_[level][end - (int32_t{1} << level)]);
  }

 private:
  std::vector<std::vector<Bytes>> levels_;
};

}  // namespace

Timeline MakeTimeline(const Instance& instance) {
  Timeline timeline;
  const SlotNumbers slot_numbers(instance, &timeline.clocks);
  const int32_t* number = slot_numbers.numbers().data();
  timeline.slots = static_cast<int32_t>(timeline.clocks.size()) - (timeline.clocks.empty() ? 0 : 1);
  const size_t blocks = instance.blocks.size();
  timeline.sizes.reserve(blocks);
  timeline.alignments.reserve(blocks);
  timeline.pins.reserve(blocks);
  timeline.lifetimes.reserve(blocks);
  timeline.arc_starts.reserve(blocks + 1);
  timeline.arcs.reserve(blocks);
  timeline.arc_starts.push_back(0);
  for (const Block& block : instance.blocks) {
    timeline.sizes.push_back(block.size);
    timeline.alignments.push_back(block.alignment);
    timeline.pins.push_back(block.pinned);
    Clock lifetime = 0;
    for (const Residency& residency : block.residency) lifetime += residency.end - residency.begin;
    timeline.lifetimes.push_back(lifetime);
    AppendArcs(block, number, timeline.slots, &timeline.arcs);
    number += 2 * block.residency.size();
    timeline.arc_starts.push_back(static_cast<int32_t>(timeline.arcs.size()));
  }
  AddWallUnlessCrossed(&timeline);
  SumLoads(&timeline);
  return timeline;
}

std::vector<Bytes> LargestLoadsMet(const Timeline& timeline) {
  const RangeMax loads(timeline.loads);
  std::vector<Bytes> met(timeline.blocks(), 0);
  for (int32_t block = 0; block < timeline.blocks(); ++block) {
    for (const Arc& arc : timeline.arcs_of(block)) {
      met[block] = std::max(met[block], loads.Max(arc.begin, std::min(arc.end, timeline.slots)));
      if (arc.end > timeline.slots) met[block] = std::max(met[block], loads.Max(0, arc.end - timeline.slots));
    }
  }
  return met;
}

}  // namespace hotpack
