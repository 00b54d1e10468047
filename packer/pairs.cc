#include "packer/pairs.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace hotpack {
namespace {

// Blocks with several arcs, or with arcs that cross slot 0, may meet more than once.
void DropRepeatedPairs(Pairs* pairs) {
  std::vector<int32_t> kept;
  std::vector<int32_t> starts{0};
  const auto blocks = static_cast<int32_t>(pairs->starts.size()) - 1;
  std::vector<int32_t> seen_by(blocks, -1);
  for (int32_t block = 0; block < blocks; ++block) {
    for (int32_t other : pairs->Of(block)) {
      if (std::exchange(seen_by[other], block) != block) kept.push_back(other);
    }
    starts.push_back(static_cast<int32_t>(kept.size()));
  }
  pairs->others = std::move(kept);
  pairs->starts = std::move(starts);
}

// Arcs sorted by begin.
class ArcsByBegin {
 public:
  explicit ArcsByBegin(const Timeline& timeline) : slots_(timeline.slots) {
    std::vector<OwnedArc>& arcs = arcs_;
    arcs.reserve(timeline.arcs.size());
    for (int32_t block = 0; block < timeline.blocks(); ++block) {
      for (const Arc& arc : timeline.arcs_of(block)) arcs.push_back({arc, block});
    }
    std::stable_sort(arcs.begin(), arcs.end(),
                     [](const OwnedArc& a, const OwnedArc& b) { return a.arc.begin < b.arc.begin; });
  }

  // Calls meet(a, b) for the blocks of every two arcs that meet: one of these begins within the other. Returns false if
  // stopped.
  template <typename Meet>
  bool ForEachPair(StopCheck* stop, Meet meet) const {
    constexpr int64_t kWordsPerPair = 4;
    const auto count = static_cast<int32_t>(arcs_.size());
    for (int32_t i = 0; i < count; ++i) {
      const OwnedArc& one = arcs_[i];
      int32_t step = 1;
      for (; step < count; ++step) {
        const bool round = i + step >= count;
        const OwnedArc& other = arcs_[round ? i + step - count : i + step];
        if (other.arc.begin + (round ? slots_ : 0) >= one.arc.end) break;
        if (one.block != other.block) meet(one.block, other.block);
      }
      if ((*stop)(kWordsPerPair * step)) return false;
    }
    return true;
  }

 private:
  struct OwnedArc {
    Arc arc;
    int32_t block;
  };

  const int32_t slots_;
  std::vector<OwnedArc> arcs_;
};

}  // namespace

Pairs MakePairs(const Timeline& timeline, StopCheck* stop) {
  const ArcsByBegin arcs(timeline);
  Pairs none{std::vector<int32_t>(timeline.blocks() + 1, 0), {}};
  Pairs result = none;
  std::vector<int32_t>& starts = result.starts;
  const bool counted = arcs.ForEachPair(stop, [&](int32_t a, int32_t b) {
    ++starts[a + 1];
    ++starts[b + 1];
  });
  if (!counted) return none;
  std::partial_sum(starts.begin(), starts.end(), starts.begin());
  result.others.resize(starts.back());
  std::vector<int32_t> at(starts.begin(), starts.end() - 1);
  const bool listed = arcs.ForEachPair(stop, [&](int32_t a, int32_t b) {
    result.others[at[a]++] = b;
    result.others[at[b]++] = a;
  });
  if (!listed) return none;
  if (timeline.arcs.size() > static_cast<size_t>(timeline.blocks()) || !timeline.walled) DropRepeatedPairs(&result);
  return result;
}

std::vector<int32_t> ClassesOfEqualBlocks(const Timeline& timeline, const Cliques& cliques) {
  std::vector<int32_t> order(timeline.blocks());
  std::iota(order.begin(), order.end(), 0);
  const auto compare = [&](int32_t a, int32_t b) {
    if (timeline.sizes[a] != timeline.sizes[b]) return timeline.sizes[a] < timeline.sizes[b] ? -1 : 1;
    if (timeline.alignments[a] != timeline.alignments[b]) {
      return timeline.alignments[a] < timeline.alignments[b] ? -1 : 1;
    }
    if (timeline.pins[a] != timeline.pins[b]) return timeline.pins[a] < timeline.pins[b] ? -1 : 1;
    const std::span<const int32_t> of_a = cliques.CliquesOf(a);
    const std::span<const int32_t> of_b = cliques.CliquesOf(b);
    if (std::equal(of_a.begin(), of_a.end(), of_b.begin(), of_b.end())) return 0;
    return std::lexicographical_compare(of_a.begin(), of_a.end(), of_b.begin(), of_b.end()) ? -1 : 1;
  };
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    const int by_value = compare(a, b);
    return by_value != 0 ? by_value < 0 : a < b;
  });
  std::vector<int32_t> classes(timeline.blocks(), 0);
  for (size_t i = 1; i < order.size(); ++i) {
    classes[order[i]] = classes[order[i - 1]] + (compare(order[i - 1], order[i]) != 0 ? 1 : 0);
  }
  return classes;
}

}  // namespace hotpack
