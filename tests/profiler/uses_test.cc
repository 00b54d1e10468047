// First and last uses, idle gaps: on a picture, and against a count of every event.
#include "profiler/uses.h"

#include <algorithm>
#include <map>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/profiler/trace_samples.h"

namespace hotpack {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Event Allocate(uint64_t id, uint64_t bytes) { return {.kind = EventKind::kAllocate, .id = id, .bytes = bytes}; }
Event Release(uint64_t id) { return {.kind = EventKind::kRelease, .id = id}; }

// Launches are added with the position they have and the blocks they name.
struct Recording {
  Trace trace;
  Notes notes;
  void Use(uint64_t position, std::vector<uint64_t> blocks) {
    notes.launches.push_back({.position = position,
                              .first_block = notes.launch_blocks.size(),
                              .blocks = static_cast<uint32_t>(blocks.size())});
    notes.launch_blocks.insert(notes.launch_blocks.end(), blocks.begin(), blocks.end());
  }
};

// clock      0   1   2        3   4        5
//   block 7  |───●───────────────────●─────|       used at clock 1 and 4
//   block 8      |───●●──|                         used at 2, twice
//   block 9                   |──────|             never
Recording Picture() {
  Recording r;
  r.trace.events = {
      Allocate(7, 100), {.kind = EventKind::kMark}, Allocate(8, 10), Release(8), Allocate(9, 5), Release(9),
      Release(7)};
  r.Use(2, {7});
  r.Use(3, {8});
  r.Use(3, {8});
  r.Use(5, {7, 12345});  // 12345 is no block
  return r;
}

TEST(UsesTest, ThePicture) {
  const Recording r = Picture();
  const Uses uses = FindUses(r.trace, r.notes);
  ASSERT_EQ(uses.blocks.size(), 3u);
  EXPECT_THAT(uses.clock, ElementsAre(1, 2, 2, 4));
  const BlockUses &seven = uses.blocks[0], &eight = uses.blocks[1], &nine = uses.blocks[2];
  EXPECT_EQ(seven.allocated, 0u);
  EXPECT_EQ(seven.released, 6u);
  EXPECT_EQ(seven.count, 2u);
  EXPECT_EQ(uses.FirstUse(seven, r.notes), 2u);
  EXPECT_EQ(uses.LastUse(seven, r.notes), 5u);
  EXPECT_EQ(eight.count, 2u);
  EXPECT_EQ(nine.count, 0u);
  EXPECT_EQ(nine.released, 5u);
  const std::vector<IdleGap> gaps = GapsOf(uses, 0);
  ASSERT_EQ(gaps.size(), 1u);
  EXPECT_EQ(gaps[0].begin, 1u);
  EXPECT_EQ(gaps[0].end, 4u);
  EXPECT_EQ(gaps[0].begin_launch, 0u);
  EXPECT_EQ(gaps[0].end_launch, 3u);
  EXPECT_EQ(gaps[0].Area(), 300u);
  EXPECT_THAT(GapsOf(uses, 1), IsEmpty());  // no tick between the two
  EXPECT_THAT(GapsOf(uses, 2), IsEmpty());
  EXPECT_EQ(LargestGaps(uses, 5).size(), 1u);
  EXPECT_THAT(LargestGaps(uses, 0), IsEmpty());
}

TEST(UsesTest, ABlockThatIsNeverReleased) {
  Recording r;
  r.trace.events = {Allocate(1, 8)};
  r.Use(1, {1});
  const Uses uses = FindUses(r.trace, r.notes);
  EXPECT_EQ(uses.blocks[0].released, kNotReleased);
  EXPECT_EQ(uses.LastUse(uses.blocks[0], r.notes), 1u);
}

TEST(UsesTest, AreasThatAreTooLargeAreTheLargest) {
  EXPECT_EQ((IdleGap{.begin = 0, .end = uint64_t{1} << 40, .bytes = uint64_t{1} << 40}).Area(), UINT64_MAX);
}

// The same found by looking at every launch for every block.
TEST(UsesTest, AgreesWithACountOfEverything) {
  std::mt19937_64 random(testing::TestSeed());
  for (int round = 0; round < 30; ++round) {
    Trace trace = testing::SampleTrace(random, 200, {});
    for (Event& event : trace.events) event.bytes %= 1 << 20;
    const Notes notes = testing::SampleNotes(random, trace);
    const Uses uses = FindUses(trace, notes);
    std::vector<std::pair<uint64_t, uint64_t>> areas;  // with the launch that the gap begins at
    for (size_t b = 0; b < uses.blocks.size(); ++b) {
      std::vector<uint64_t> launches;
      for (size_t i = 0; i < notes.launches.size(); ++i) {
        const auto begin = notes.launch_blocks.begin() + static_cast<std::ptrdiff_t>(notes.launches[i].first_block);
        launches.insert(launches.end(), std::count(begin, begin + notes.launches[i].blocks, uses.blocks[b].id), i);
      }
      ASSERT_EQ(uses.blocks[b].count, launches.size());
      for (size_t i = 0; i < launches.size(); ++i) {
        ASSERT_EQ(uses.launches[uses.blocks[b].first + i], launches[i]);
        if (i == 0) continue;
        uint64_t ticks = 0;
        for (uint64_t at = notes.launches[launches[i - 1]].position; at < notes.launches[launches[i]].position; ++at) {
          ticks += trace.events[at].kind == EventKind::kAllocate || trace.events[at].kind == EventKind::kRelease;
        }
        if (ticks > 0) areas.emplace_back(ticks * uses.blocks[b].bytes, launches[i - 1]);
      }
    }
    std::sort(areas.begin(), areas.end(), [](const auto& x, const auto& y) {
      return x.first != y.first ? x.first > y.first : x.second < y.second;
    });
    const std::vector<IdleGap> largest = LargestGaps(uses, 7);
    ASSERT_EQ(largest.size(), std::min<size_t>(7, areas.size()));
    for (size_t i = 0; i < largest.size(); ++i) {
      EXPECT_EQ(largest[i].Area(), areas[i].first);
      EXPECT_EQ(largest[i].begin_launch, areas[i].second);
    }
  }
}

}  // namespace
}  // namespace hotpack
