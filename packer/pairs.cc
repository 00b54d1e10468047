#include "packer/pairs.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace hotpack {
namespace {

// Blocks of several arcs, or arcs that go round, may meet more than once.
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

}  // namespace

// Of two arcs that meet, one begins within the other.
Pairs MakePairs(const Timeline& timeline) {
  const std::vector<Arc>& arcs = timeline.arcs;
  const auto count = static_cast<int32_t>(arcs.size());
  std::vector<int32_t> blocks(arcs.size());
  for (int32_t block = 0; block < timeline.blocks(); ++block) {
    std::fill(blocks.begin() + timeline.arc_starts[block], blocks.begin() + timeline.arc_starts[block + 1], block);
  }
  std::vector<int32_t> order(arcs.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return arcs[a].begin < arcs[b].begin; });
  std::vector<std::pair<int32_t, int32_t>> pairs;
  for (int32_t i = 0; i < count; ++i) {
    const Arc& arc = arcs[order[i]];
    for (int32_t step = 1; step < count; ++step) {
      const int32_t j = i + step < count ? i + step : i + step - count;
      if (arcs[order[j]].begin + (j < i ? timeline.slots : 0) >= arc.end) break;
      if (blocks[order[i]] != blocks[order[j]]) pairs.emplace_back(blocks[order[i]], blocks[order[j]]);
    }
  }
  Pairs result;
  std::vector<int32_t>& starts = result.starts;
  starts.assign(timeline.blocks() + 1, 0);
  for (const auto& [a, b] : pairs) {
    ++starts[a + 1];
    ++starts[b + 1];
  }
  std::partial_sum(starts.begin(), starts.end(), starts.begin());
  result.others.resize(2 * pairs.size());
  std::vector<int32_t> at(starts.begin(), starts.end() - 1);
  for (const auto& [a, b] : pairs) {
    result.others[at[a]++] = b;
    result.others[at[b]++] = a;
  }
  if (arcs.size() > static_cast<size_t>(timeline.blocks()) || !timeline.walled) DropRepeatedPairs(&result);
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
