#include "runtime/script/conflict_placement.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace hotpack {
namespace {

class FirstFit {
 public:
  FirstFit(const Instance& instance, const ConflictRows& conflicts, const ConflictPlacementOptions& options)
      : blocks_(instance.blocks), conflicts_(conflicts), options_(options) {}

  uint64_t compared() const { return compared_; }
  bool Cancelled() const { return options_.cancel != nullptr && *options_.cancel; }
  bool IsSmall(uint32_t i) const { return blocks_[i].size < options_.small; }

  // Places the blocks in this order: each at the lowest offset that is free. The first `wishes` relations are kept
  // where the block ends at most at `most`.
  Placement Place(const std::vector<uint32_t>& order, size_t wishes = 0, Offset most = 0) {
    Placement placement;
    placement.offsets.assign(blocks_.size(), 0);
    placed_.clear();
    for (uint32_t i = 0; i < blocks_.size(); ++i) {
      if (blocks_[i].pinned >= 0) Put(i, blocks_[i].pinned, &placement);
    }
    for (const uint32_t i : order) {
      if (blocks_[i].pinned >= 0) continue;
      Offset at = -1;
      for (size_t w = wishes; w > 0 && at < 0; --w) at = LowestFree(i, (*options_.wishes)[w - 1], most, placement);
      if (at < 0) at = LowestFree(i, conflicts_, std::numeric_limits<Offset>::max(), placement);
      Put(i, at, &placement);
    }
    return placement;
  }

 private:
  struct Placed {
    Offset begin, end;
    uint32_t block;
    bool pinned;
  };

  // Returns -1 if the block would end above `most`.
  Offset LowestFree(uint32_t i, const ConflictRows& rows, Offset most, const Placement& placement) {
    const Bytes size = blocks_[i].size, alignment = blocks_[i].alignment;
    const auto aligned = [alignment](Offset offset) {
      return alignment == 1 ? offset : (offset + alignment - 1) / alignment * alignment;
    };
    if (Cancelled()) return aligned(placement.height);
    const uint64_t* const row = rows.Row(i);
    Offset at = 0;
    auto other = placed_.begin();
    for (; other != placed_.end() && other->begin < at + size && at <= most - size; ++other) {
      if (other->end <= at) continue;
      if (other->pinned || (row[other->block / 64] >> (other->block % 64) & 1) != 0) at = aligned(other->end);
    }
    compared_ += static_cast<uint64_t>(other - placed_.begin());
    return at > most - size ? -1 : at;
  }

  void Put(uint32_t i, Offset at, Placement* placement) {
    ++compared_;  // so that each placement costs something
    const Offset end = at + blocks_[i].size;
    placement->offsets[i] = at;
    placement->height = std::max(placement->height, end);
    const auto after = std::upper_bound(placed_.begin(), placed_.end(), at,
                                        [](Offset offset, const Placed& other) { return offset < other.begin; });
    placed_.insert(after, {at, end, i, blocks_[i].pinned >= 0});
  }

  const std::vector<Block>& blocks_;
  const ConflictRows& conflicts_;
  const ConflictPlacementOptions& options_;
  std::vector<Placed> placed_;  // ascending
  uint64_t compared_ = 0;
};

// Moves what lies on top ahead of half of the blocks before it. Small ones stay first.
std::vector<uint32_t> Reorder(const Instance& instance, const FirstFit& first_fit, const Placement& placement,
                              Bytes enough, const std::vector<uint32_t>& order) {
  std::vector<std::pair<size_t, uint32_t>> ranks;
  for (size_t rank = 0; rank < order.size(); ++rank) {
    const uint32_t i = order[rank];
    const Offset top = placement.offsets[i] + instance.blocks[i].size;
    const bool on_top = top > std::max(enough, placement.height - placement.height / 64);
    ranks.emplace_back(first_fit.IsSmall(i) ? 0 : on_top ? rank : 2 * rank + 1, i);
  }
  std::stable_sort(ranks.begin(), ranks.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<uint32_t> reordered;
  reordered.reserve(ranks.size());
  for (const auto& [rank, i] : ranks) reordered.push_back(i);
  return reordered;
}

}  // namespace

std::vector<Placement> PlaceByConflicts(const Instance& instance, const ConflictRows& conflicts,
                                        const ConflictPlacementOptions& options) {
  constexpr int kPatience = 12;   // rounds without a lower placement, before the next one begins with the best order
  constexpr int kHopeless = 120;  // ... before the search ends: with few blocks they take little time
  const std::vector<Block>& blocks = instance.blocks;
  FirstFit first_fit(instance, conflicts, options);
  std::vector<uint32_t> by_key(blocks.size());
  std::iota(by_key.begin(), by_key.end(), 0u);
  std::stable_sort(by_key.begin(), by_key.end(), [&](uint32_t a, uint32_t b) {
    if (first_fit.IsSmall(a) != first_fit.IsSmall(b)) return first_fit.IsSmall(a);
    if (options.keys != nullptr && (*options.keys)[a] != (*options.keys)[b])
      return (*options.keys)[a] > (*options.keys)[b];
    return blocks[a].size > blocks[b].size;
  });
  std::vector<uint32_t> order = by_key, best_order = by_key;
  Placement best = first_fit.Place(order);
  Placement last = best;
  for (int since = 0; since < kHopeless && best.height > options.enough && first_fit.compared() < options.work &&
                      !first_fit.Cancelled();) {
    order = Reorder(instance, first_fit, last, options.enough, order);
    last = first_fit.Place(order);
    if (last.height < best.height) {
      best = last;
      best_order = order;
      since = 0;
    } else if (++since % kPatience == 0) {
      order = best_order;
    }
  }
  std::vector<Placement> placements = {best};
  if (options.wishes == nullptr) return placements;
  const auto most = static_cast<Bytes>(static_cast<double>(best.height) * options.wish_cost);
  for (const std::vector<uint32_t>* each : {&best_order, &by_key}) {
    for (size_t wishes = options.wishes->size(); wishes > 0; --wishes) {
      Placement other = first_fit.Place(*each, wishes, most);
      if (other.height <= most) placements.push_back(std::move(other));
    }
  }
  return placements;
}

uint64_t CountViolations(const Instance& instance, const Placement& placement,
                         const std::vector<ConflictRows>& wishes) {
  uint64_t count = 0;
  for (size_t i = 0; i < instance.blocks.size(); ++i) {
    if (instance.blocks[i].pinned >= 0) continue;
    const Offset begin = placement.offsets[i], end = begin + instance.blocks[i].size;
    for (size_t j = 0; j < i; ++j) {
      if (begin >= placement.offsets[j] + instance.blocks[j].size || placement.offsets[j] >= end) continue;
      if (instance.blocks[j].pinned >= 0) continue;
      for (const ConflictRows& rows : wishes) count += rows.At(i, j) ? 1 : 0;
    }
  }
  return count;
}

}  // namespace hotpack
