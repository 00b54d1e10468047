#include "packer/cliques.h"

#include <algorithm>

namespace hotpack {
namespace {

// Returns, by slot, the number of its clique; -1 if the slot's set is contained in another one's. Goes round from a
// slot after which a block ends. A set is maximal if a block ends after it, and a block has begun since the last such
// end.
std::vector<int32_t> NumberCliques(const Timeline& timeline, int32_t* cliques) {
  const int32_t slots = timeline.slots;
  std::vector<char> begins(slots, 0);
  std::vector<char> ends(slots, 0);  // ends[s]: a block is resident at slot s and not at the next one
  int32_t last_end = -1;
  for (const Arc& arc : timeline.arcs) {
    if (arc.end - arc.begin == slots) continue;
    begins[arc.begin] = 1;
    last_end = (arc.end - 1) % slots;
    ends[last_end] = 1;
  }
  std::vector<int32_t> numbers(slots, -1);
  *cliques = 0;
  if (last_end < 0 && slots > 0) numbers[0] = (*cliques)++;  // every block goes all the way round
  bool begun = false;
  for (int32_t step = 1; last_end >= 0 && step <= slots; ++step) {
    const int32_t slot = (last_end + step) % slots;
    begun = begun || begins[slot] != 0;
    if (!begun || ends[slot] == 0) continue;
    numbers[slot] = (*cliques)++;
    begun = false;
  }
  return numbers;
}

template <typename Function>
void ForEachSlot(const Timeline& timeline, int32_t block, Function function) {
  for (const Arc& arc : timeline.arcs_of(block)) {
    for (int32_t slot = arc.begin; slot < arc.end; ++slot) {
      function(slot < timeline.slots ? slot : slot - timeline.slots);
    }
  }
}

}  // namespace

int64_t CountMembers(const Timeline& timeline) {
  int32_t cliques = 0;
  const std::vector<int32_t> numbers = NumberCliques(timeline, &cliques);
  std::vector<int32_t> before(numbers.size() + 1, 0);  // cliques at the slots before
  for (size_t slot = 0; slot < numbers.size(); ++slot) before[slot + 1] = before[slot] + (numbers[slot] >= 0 ? 1 : 0);
  int64_t count = 0;
  for (const Arc& arc : timeline.arcs) {
    count += before[std::min(arc.end, timeline.slots)] - before[arc.begin];
    if (arc.end > timeline.slots) count += before[arc.end - timeline.slots];
  }
  return count;
}

// If two arcs meet, one begins within the other, or both begin together.
int64_t CountPairs(const Timeline& timeline) {
  std::vector<int64_t> before(timeline.slots + 1, 0);  // arcs that begin at the slots before
  for (const Arc& arc : timeline.arcs) ++before[arc.begin + 1];
  int64_t together = 0;
  for (int32_t slot = 0; slot < timeline.slots; ++slot) {
    together += before[slot + 1] * (before[slot + 1] - 1) / 2;
    before[slot + 1] += before[slot];
  }
  int64_t count = together;
  for (const Arc& arc : timeline.arcs) {
    count += before[std::min(arc.end, timeline.slots)] - before[arc.begin + 1];
    if (arc.end > timeline.slots) count += before[arc.end - timeline.slots];
  }
  return count;
}

Cliques MakeCliques(const Timeline& timeline, StopCheck* stop) {
  constexpr int64_t kWordsPerMember = 8;
  int32_t count = 0;
  const std::vector<int32_t> numbers = NumberCliques(timeline, &count);
  Cliques result;
  result.clique_starts.assign(count + 1, 0);
  result.block_starts.push_back(0);
  for (int32_t block = 0; block < timeline.blocks(); ++block) {
    ForEachSlot(timeline, block, [&](int32_t slot) {
      if (numbers[slot] < 0) return;
      result.cliques_of_block.push_back(numbers[slot]);
      ++result.clique_starts[numbers[slot] + 1];
    });
    std::sort(result.cliques_of_block.begin() + result.block_starts.back(), result.cliques_of_block.end());
    result.block_starts.push_back(static_cast<int32_t>(result.cliques_of_block.size()));
    if ((*stop)(kWordsPerMember * static_cast<int64_t>(result.CliquesOf(block).size()))) {
      return {{0}, {}, std::vector<int32_t>(timeline.blocks() + 1, 0), {}};
    }
  }
  for (int32_t clique = 0; clique < count; ++clique) result.clique_starts[clique + 1] += result.clique_starts[clique];
  result.members.resize(result.cliques_of_block.size());
  std::vector<int32_t> at(result.clique_starts.begin(), result.clique_starts.end() - 1);
  for (int32_t block = 0; block < timeline.blocks(); ++block) {
    for (int32_t clique : result.CliquesOf(block)) result.members[at[clique]++] = block;
  }
  return result;
}

}  // namespace hotpack
