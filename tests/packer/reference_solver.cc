// Why trying orders is enough. Call a placement settled if each unpinned block lies at its lowest free aligned offset
// among the pinned blocks and the blocks before it. "Before" means: lower offset, or the same offset and a smaller
// index.
//
// Claim: some placement of least height is settled.
//  1. Take any placement o of least height. Go through its unpinned blocks from the lowest up. Move each to its lowest
//     free aligned offset among the pinned blocks and the blocks already visited.
//  2. Say block i is next, and those before it have moved from o to n ≤ o. The old offset o(i) is still free: no pinned
//     block moved. A block j before i that is ever resident together with i had o(j) ≤ o(i). Sizes are positive and o
//     is valid, so its top o(j) + size(j) ≤ o(i), and it has only moved down.
//  3. So n(i) ≤ o(i), the height has not grown, and alignment holds.
//  4. If any block moved, the sum of all offsets fell. It is a nonnegative integer. So after finitely many rounds no
//     block moves, and then the placement is settled.
// (Of several blocks with the same offset no two are ever resident together, so their order does not matter.)
//
// The proof uses no intervals, only pairs that are ever resident together. So carried blocks and any number of
// intervals are covered. Alignments need not be powers of two.
//
// A settled placement is found by placing blocks in its own order, each at the lowest free offset, and continuing only
// to larger (offset, index). Four ways to save work, all exact:
//  - Take an unplaced block whose lowest free range [f, f + size) ends at or below the current offset. Later blocks can
//    never raise it, so it never gets its turn: the order is not that of a settled placement.
//  - Blocks that are equal in all respects are placed by index, because exchanging them changes nothing.
//  - All remaining blocks lie at or above the current offset, each at or above its lowest free one. Blocks that are
//    resident at one moment do not overlap. So the lowest offset among them plus the sum of their sizes is a bound.
//  - If the unplaced blocks divide into groups that never meet, each group is its own search. The placed blocks are to
//    it as pinned blocks are to the whole.
#include "reference_solver.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <vector>

namespace hotpack::testing {
namespace {

constexpr Bytes kAnyHeight = std::numeric_limits<Bytes>::max();
constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

bool EverTogether(const Block& a, const Block& b) {
  for (const Residency& x : a.residency) {
    for (const Residency& y : b.residency) {
      if (x.begin < y.end && y.begin < x.end) return true;
    }
  }
  return false;
}

bool ResidentAt(const Block& block, Clock clock) {
  return std::any_of(block.residency.begin(), block.residency.end(),
                     [&](const Residency& r) { return r.begin <= clock && clock < r.end; });
}

bool SameResidency(const Block& a, const Block& b) {
  return std::equal(a.residency.begin(), a.residency.end(), b.residency.begin(), b.residency.end(),
                    [](const Residency& x, const Residency& y) { return x.begin == y.begin && x.end == y.end; });
}

Offset AlignUp(Offset offset, Bytes alignment) { return (offset + alignment - 1) / alignment * alignment; }

using Set = uint32_t;  // of blocks, by bit

constexpr Set Only(int block) { return Set{1} << block; }

// Calls `visit` with each member, ascending.
template <typename Visit>
void ForEach(Set set, Visit visit) {
  for (; set != 0; set &= set - 1) visit(__builtin_ctz(set));
}

class Search {
 public:
  explicit Search(const Instance& instance) : blocks_(static_cast<int>(instance.blocks.size())) {
    if (blocks_ > kMaxReferenceBlocks) std::abort();
    std::iota(names_.begin(), names_.end(), 0);
    // Large blocks first: good placements are met early. Any numbering is right.
    std::stable_sort(names_.begin(), names_.begin() + blocks_,
                     [&](int a, int b) { return instance.blocks[a].size > instance.blocks[b].size; });
    for (int block = 0; block < blocks_; ++block) TakeIn(instance, block);
    for (int block = 0; block < blocks_; ++block) lowest_at_first_[block] = LowestFree(block, 0, pinned_);
    AddMoments(instance);
  }

  // A placement of height ≤ limit. False when there is none, or when more than max_steps blocks were placed in all
  // (ran_out() then says so).
  bool Run(Bytes limit, int64_t max_steps, Placement* placement) {
    limit_ = limit;
    steps_left_ = max_steps;
    bool fits = true;
    ForEach(pinned_, [&](int block) { fits = fits && offsets_[block] + sizes_[block] <= limit; });
    if (!fits || !ExtendGroups(All() & ~pinned_, 0, -1, lowest_at_first_)) return false;
    *placement = {};
    placement->offsets.resize(blocks_);
    for (int block = 0; block < blocks_; ++block) {
      placement->offsets[names_[block]] = offsets_[block];
      placement->height = std::max(placement->height, offsets_[block] + sizes_[block]);
    }
    return true;
  }

  bool ran_out() const { return steps_left_ < 0; }
  int64_t steps_left() const { return steps_left_; }

 private:
  using Offsets = std::array<Offset, kMaxReferenceBlocks>;

  void TakeIn(const Instance& instance, int block) {
    const Block& of = instance.blocks[names_[block]];
    sizes_[block] = of.size;
    alignments_[block] = of.alignment;
    for (int other = 0; other < block; ++other) {
      const Block& before = instance.blocks[names_[other]];
      if (!EverTogether(of, before)) continue;
      meets_[block] |= Only(other);
      meets_[other] |= Only(block);
      if (of.pinned == kNotPinned && before.pinned == kNotPinned && of.size == before.size &&
          of.alignment == before.alignment && SameResidency(of, before)) {
        twins_before_[block] |= Only(other);
      }
    }
    if (of.pinned == kNotPinned) return;
    pinned_ |= Only(block);
    offsets_[block] = of.pinned;
  }

  // Sets of blocks that are resident at one moment. The set only changes for the larger where a residency begins.
  void AddMoments(const Instance& instance) {
    for (const Block& block : instance.blocks) {
      for (const Residency& residency : block.residency) {
        Set set = 0;
        for (int other = 0; other < blocks_; ++other) {
          if (ResidentAt(instance.blocks[names_[other]], residency.begin)) set |= Only(other);
        }
        const auto covers = [&](Set moment) { return (set & ~moment) == 0; };
        if (std::none_of(moments_.begin(), moments_.end(), covers)) moments_.push_back(set);
      }
    }
  }

  // Returns the lowest aligned offset ≥ from at which the block is clear of the placed ones. If it overlaps one of
  // them, it does so at every offset below that one's top. So the search continues there.
  Offset LowestFree(int block, Offset from, Set placed) const {
    Offset offset = AlignUp(from, alignments_[block]);
    const Set near = placed & meets_[block];
    for (bool moved = true; moved;) {
      moved = false;
      ForEach(near, [&](int other) {
        const Offset top = offsets_[other] + sizes_[other];
        if (offset >= top || offsets_[other] >= offset + sizes_[block]) return;
        offset = AlignUp(top, alignments_[block]);
        moved = true;
      });
    }
    return offset;
  }

  bool Hopeless(Set unplaced, Offset last, const Offsets& lowest) const {
    for (const Set moment : moments_) {
      Bytes sum = 0;
      Offset bottom = kAnyHeight;
      ForEach(moment & unplaced, [&](int block) {
        sum += sizes_[block];
        bottom = std::min(bottom, lowest[block]);
      });
      if (sum > 0 && std::max(bottom, last) > limit_ - sum) return true;
    }
    return false;
  }

  // The blocks of `among` that the lowest one of them is linked with by a chain of meetings.
  Set FirstGroup(Set among) const {
    Set group = among & (~among + 1);
    for (Set fresh = group; fresh != 0;) {
      Set met = 0;
      ForEach(fresh, [&](int block) { met |= meets_[block]; });
      fresh = met & among & ~group;
      group |= fresh;
    }
    return group;
  }

  bool ExtendGroups(Set unplaced, Offset last, int last_block, const Offsets& lowest) {
    while (unplaced != 0) {
      const Set group = FirstGroup(unplaced);
      if (!Extend(group, last, last_block, lowest)) return false;
      unplaced &= ~group;
    }
    return true;
  }

  // Places all of a group, or returns false. The blocks placed are those that its blocks were clear of in `lowest`.
  bool Extend(Set group, Offset last, int last_block, const Offsets& lowest) {
    if (--steps_left_ < 0 || Hopeless(group, last, lowest)) return false;
    Offset first_end = kAnyHeight;
    ForEach(group, [&](int block) { first_end = std::min(first_end, lowest[block] + sizes_[block]); });
    for (Set rest = group; rest != 0; rest &= rest - 1) {
      const int block = __builtin_ctz(rest);
      const Offset offset = lowest[block];
      const bool in_order = offset > last || (offset == last && block > last_block);
      if (!in_order || offset >= first_end || (twins_before_[block] & group) != 0) continue;
      offsets_[block] = offset;
      const Set others = group & ~Only(block);
      Offsets next = lowest;
      // Of the blocks that meet one of the others, all but the others themselves are placed: a group is whole.
      ForEach(others & meets_[block], [&](int other) { next[other] = LowestFree(other, lowest[other], ~others); });
      if (ExtendGroups(others, offset, block, next)) return true;
    }
    return false;
  }

  Set All() const { return Only(blocks_) - 1; }

  const int blocks_;
  std::array<int, kMaxReferenceBlocks> names_{};  // the instance's index by ours
  std::array<Bytes, kMaxReferenceBlocks> sizes_{};
  std::array<Bytes, kMaxReferenceBlocks> alignments_{};
  std::array<Set, kMaxReferenceBlocks> meets_{};
  std::array<Set, kMaxReferenceBlocks> twins_before_{};
  Set pinned_ = 0;
  std::vector<Set> moments_;
  Offsets lowest_at_first_{};

  Offsets offsets_{};  // of the pinned blocks and those placed
  Bytes limit_ = 0;    // on the height
  int64_t steps_left_ = 0;
};

std::string Name(size_t block) { return "block " + std::to_string(block); }

}  // namespace

ReferenceResult Reference(const Instance& instance, int64_t max_steps) {
  ReferenceResult result;
  result.least = ReferenceLoad(instance);
  Search search(instance);
  int64_t steps = max_steps;
  const auto run = [&](Bytes limit) {
    const bool found = search.Run(limit, steps, &result.placement);
    steps = std::max<int64_t>(search.steps_left(), 0);
    return found;
  };
  if (run(result.least)) return result;
  if (search.ran_out()) steps = max_steps;                                 // one more, to have a placement at all
  if (!search.Run(kAnyHeight, kNoLimit, &result.placement)) std::abort();  // there always is one
  while (run(result.placement.height - 1)) {
  }
  if (!search.ran_out()) result.least = result.placement.height;
  return result;
}

Placement ReferenceOptimum(const Instance& instance) { return Reference(instance, kNoLimit).placement; }

std::optional<Placement> ReferenceWithin(const Instance& instance, Bytes capacity) {
  Placement placement;
  if (!Search(instance).Run(capacity, kNoLimit, &placement)) return std::nullopt;
  return placement;
}

Bytes ReferenceLoad(const Instance& instance) {
  Bytes most = 0;
  for (const Block& block : instance.blocks) {
    if (block.pinned != kNotPinned) most = std::max(most, block.pinned + block.size);
    for (const Residency& residency : block.residency) {  // the load rises only where a residency begins
      Bytes load = 0;
      for (const Block& other : instance.blocks) load += ResidentAt(other, residency.begin) ? other.size : 0;
      most = std::max(most, load);
    }
  }
  return most;
}

std::string ReferenceFault(const Instance& instance, const Placement& placement) {
  const std::vector<Block>& blocks = instance.blocks;
  const std::vector<Offset>& offsets = placement.offsets;
  if (offsets.size() != blocks.size()) return "wrong number of offsets";
  Bytes height = 0;
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (offsets[i] < 0) return Name(i) + " is below 0";
    if (offsets[i] % blocks[i].alignment != 0) return Name(i) + " is misaligned";
    if (blocks[i].pinned != kNotPinned && offsets[i] != blocks[i].pinned) return Name(i) + " is not at its pin";
    height = std::max(height, offsets[i] + blocks[i].size);
    for (size_t j = 0; j < i; ++j) {
      if (offsets[i] < offsets[j] + blocks[j].size && offsets[j] < offsets[i] + blocks[i].size &&
          EverTogether(blocks[i], blocks[j])) {
        return Name(j) + " and " + Name(i) + " overlap";
      }
    }
  }
  return placement.height == height ? "" : "wrong height";
}

bool ReferencePinsFit(const Instance& instance) {
  const std::vector<Block>& blocks = instance.blocks;
  for (size_t i = 0; i < blocks.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (blocks[i].pinned == kNotPinned || blocks[j].pinned == kNotPinned) continue;
      if (blocks[i].pinned < blocks[j].pinned + blocks[j].size &&
          blocks[j].pinned < blocks[i].pinned + blocks[i].size && EverTogether(blocks[i], blocks[j])) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace hotpack::testing
