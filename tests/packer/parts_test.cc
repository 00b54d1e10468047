#include "packer/parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "packer/random.h"
#include "packer/timeline.h"
#include "random_instance.h"
#include "reference_solver.h"
#include "small_instance.h"

namespace hotpack {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Split SplitOf(const Instance& instance) { return SplitInstance(MakeTimeline(instance)); }

//    offset ▲ ├──────┐ ┌───┐ ┌────┤
//           │ │  1   │ │ 2 │ │ 3  │     0 is the floor
//           │ ├──────┴─┴───┴─┴────┤
//           │ │         0         │
//           └─┴───────────────────┴─► clock
TEST(PartsTest, FallApartWhereOnlyTheFloorIsLive) {
  const Split split = SplitOf({{{.size = 8, .residency = {{0, 9}}},
                                {.size = 3, .residency = {{0, 2}}},
                                {.size = 5, .residency = {{3, 5}}},
                                {.size = 2, .residency = {{6, 9}}}}});
  EXPECT_THAT(split.floor, ElementsAre(0));
  EXPECT_EQ(split.floor_height, 8);
  EXPECT_THAT(split.parts, ElementsAre(ElementsAre(1), ElementsAre(2), ElementsAre(3)));
  EXPECT_FALSE(split.is_trivial());
}

TEST(PartsTest, BlocksThatTouchInTimeAreApart) {
  const Split split = SplitOf(
      {{{.size = 3, .residency = {{0, 2}}}, {.size = 5, .residency = {{2, 5}}}, {.size = 2, .residency = {{4, 9}}}}});
  EXPECT_THAT(split.parts, ElementsAre(ElementsAre(0), ElementsAre(1, 2)));
  EXPECT_THAT(split.floor, IsEmpty());
}

TEST(PartsTest, ABlockOfSeveralIntervalsHoldsThemTogether) {
  const Split split = SplitOf({{{.size = 3, .residency = {{1, 3}, {6, 8}}},
                                {.size = 5, .residency = {{2, 4}}},
                                {.size = 4, .residency = {{4, 6}}},
                                {.size = 2, .residency = {{7, 9}}},
                                {.size = 2, .residency = {{0, 1}}}}});
  EXPECT_THAT(split.parts, ElementsAre(ElementsAre(0, 1, 3), ElementsAre(2), ElementsAre(4)));
}

// A carried block is live at both ends of time.
TEST(PartsTest, PartsGoRoundTheRing) {
  const Split split = SplitOf({{{.size = 3, .residency = {{0, 2}, {7, 9}}},
                                {.size = 5, .residency = {{1, 3}}},
                                {.size = 4, .residency = {{3, 6}}},
                                {.size = 2, .residency = {{6, 8}}}}});
  EXPECT_THAT(split.parts, ElementsAre(ElementsAre(0, 1, 3), ElementsAre(2)));
}

TEST(PartsTest, TheFloorKeepsEverybodysAlignment) {
  const auto floor_of = [](Bytes size, Bytes own, Bytes others) {
    return SplitOf({{{.size = size, .alignment = own, .residency = {{0, 9}}},
                     {.size = 4, .alignment = others, .residency = {{0, 5}}},
                     {.size = 3, .residency = {{5, 9}}}}})
        .floor;
  };
  EXPECT_THAT(floor_of(12, 1, 1), ElementsAre(0));
  EXPECT_THAT(floor_of(12, 4, 6), ElementsAre(0));
  EXPECT_THAT(floor_of(12, 1, 8), IsEmpty());
  EXPECT_THAT(floor_of(12, 8, 1), IsEmpty());
  EXPECT_THAT(floor_of(3, 1, 2), IsEmpty());
}

TEST(PartsTest, WithPinsThereIsNoFloor) {
  const Split split = SplitOf({{{.size = 8, .residency = {{0, 9}}},
                                {.size = 3, .pinned = 0, .residency = {{0, 2}}},
                                {.size = 5, .residency = {{3, 9}}}}});
  EXPECT_THAT(split.floor, IsEmpty());
  EXPECT_THAT(split.parts, ElementsAre(ElementsAre(0, 1, 2)));
  EXPECT_TRUE(split.is_trivial());
}

TEST(PartsTest, AFloorAloneHasNoParts) {
  const Split split = SplitOf({{{.size = 8, .residency = {{0, 9}}}, {.size = 3, .residency = {{0, 4}, {4, 9}}}}});
  EXPECT_THAT(split.floor, ElementsAre(0, 1));
  EXPECT_EQ(split.floor_height, 11);
  EXPECT_THAT(split.parts, IsEmpty());
}

TEST(PartsTest, SubsetsKeepTheBlocks) {
  const Instance instance{
      {{.size = 8, .residency = {{0, 9}}}, {.size = 3, .alignment = 2, .pinned = 4, .residency = {{1, 2}, {4, 5}}}}};
  const Instance subset = Subset(instance, {1, 0});
  ASSERT_EQ(subset.blocks.size(), 2u);
  EXPECT_EQ(subset.blocks[0].alignment, 2);
  EXPECT_EQ(subset.blocks[0].pinned, 4);
  EXPECT_EQ(subset.blocks[0].residency[1].begin, 4);
  EXPECT_EQ(subset.blocks[1].size, 8);
}

void ExpectEveryBlockOnce(const Split& split, size_t blocks) {
  std::vector<int32_t> all = split.floor;
  for (const std::vector<int32_t>& part : split.parts) {
    ASSERT_FALSE(part.empty());
    ASSERT_TRUE(std::is_sorted(part.begin(), part.end()));
    all.insert(all.end(), part.begin(), part.end());
  }
  std::sort(all.begin(), all.end());
  ASSERT_EQ(all.size(), blocks);
  for (size_t i = 0; i < blocks; ++i) ASSERT_EQ(all[i], static_cast<int32_t>(i));
}

// The sentence of parts.h, by the judge: floor and highest part add up to the least height of the whole.
TEST(PartsPropertyTest, TheHighestPartOnTheFloorIsAnOptimum) {
  Random random(testing::TestSeed() + 40);
  int with_floor = 0;
  int with_parts = 0;
  for (int run = 0; run < testing::Runs(10'000); ++run) {
    const Instance instance = testing::SmallInstance(8, &random);
    const Split split = SplitOf(instance);
    ASSERT_NO_FATAL_FAILURE(ExpectEveryBlockOnce(split, instance.blocks.size())) << "run " << run;
    Bytes floor_height = 0;
    for (int32_t block : split.floor) floor_height += instance.blocks[block].size;
    ASSERT_EQ(split.floor_height, floor_height);
    Bytes highest = 0;
    for (const std::vector<int32_t>& part : split.parts) {
      highest = std::max(highest, testing::ReferenceOptimum(Subset(instance, part)).height);
    }
    ASSERT_EQ(split.floor_height + highest, testing::ReferenceOptimum(instance).height) << "run " << run;
    with_floor += split.floor.empty() ? 0 : 1;
    with_parts += split.parts.size() > 1 ? 1 : 0;
  }
  EXPECT_GT(with_floor, testing::Runs(100));
  EXPECT_GT(with_parts, testing::Runs(1000));
}

TEST(PartsPropertyTest, PartsDoNotMeetAndFallApartNoFurther) {
  Random random(testing::TestSeed() + 41);
  for (int run = 0; run < testing::Runs(3000); ++run) {
    const Instance instance = testing::SmallInstance(12, &random);
    const Split split = SplitOf(instance);
    std::vector<size_t> part_of(instance.blocks.size(), split.parts.size());
    for (size_t part = 0; part < split.parts.size(); ++part) {
      for (int32_t block : split.parts[part]) part_of[block] = part;
    }
    for (size_t a = 0; a < part_of.size(); ++a) {
      for (size_t b = 0; b < a; ++b) {
        if (part_of[a] == part_of[b] || part_of[a] == split.parts.size() || part_of[b] == split.parts.size()) continue;
        ASSERT_FALSE(testing::ResidentTogether(instance.blocks[a], instance.blocks[b])) << "run " << run;
      }
    }
    for (const std::vector<int32_t>& part : split.parts) {
      const Split again = SplitOf(Subset(instance, part));
      ASSERT_TRUE(again.parts.size() == 1 || !again.floor.empty()) << "run " << run;
    }
  }
}

}  // namespace
}  // namespace hotpack
