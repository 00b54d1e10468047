#include "packer/best_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <ostream>
#include <random>

#include "packer/validator.h"
#include "random_instance.h"

namespace hotpack {

bool operator==(const BestFitStep& a, const BestFitStep& b) {
  return a.kind == b.kind && a.line_begin == b.line_begin && a.line_end == b.line_end && a.height == b.height &&
         a.block == b.block && a.to == b.to;
}

std::ostream& operator<<(std::ostream& out, const BestFitStep& step) {
  out << (step.kind == BestFitStep::kPlace ? "place block " + std::to_string(step.block) + " on" : "lift");
  return out << " [" << step.line_begin << ", " << step.line_end << ") at " << step.height << " to " << step.to;
}

namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr auto kPlace = BestFitStep::kPlace;
constexpr auto kLift = BestFitStep::kLift;

Block MakeBlock(Bytes size, absl::InlinedVector<Residency, 1> residency) {
  Block block;
  block.size = size;
  block.residency = std::move(residency);
  return block;
}

// An instance of the shape of Sekiyama 2018, Figure 1: the longest block is in the middle and leaves three offset
// lines; the lowest of them, leftmost first, get a block or are lifted.
//
//    7 ┤           ┌─────────┐
//      │           │    5    │
//    5 ┼────────┐  ├──┬──────┴────────┐
//    4 ┤   4 ┌──┴──┴──┤               │
//      │  ┌──┴────────┤       2       │     (block 4 stands on block 3 and on a sealed hole)
//    3 ┼──┴─┬─────────┴───────┬───────┘
//    2 ┼────┤        0        │
//      │ 1  │                 │
//    0 ┴────┴─────────────────┴────────
//      0    2                 8      10
TEST(BestFitTest, DoesEachStepOfFigure1) {
  Instance instance;
  instance.blocks = {MakeBlock(3, {{2, 8}}), MakeBlock(2, {{0, 2}}), MakeBlock(2, {{5, 10}}),
                     MakeBlock(1, {{1, 5}}), MakeBlock(1, {{0, 3}}), MakeBlock(2, {{4, 7}})};
  std::vector<BestFitStep> steps;
  const Placement placement = PackBestFit(instance, &steps);
  EXPECT_THAT(steps, ElementsAre(BestFitStep{kPlace, 0, 10, 0, 0, 3},  // longest lifetime of all
                                 BestFitStep{kPlace, 0, 2, 0, 1, 2},   // of two lines at 0 the leftmost
                                 BestFitStep{kLift, 8, 10, 0, -1, 3},  // nothing fits
                                 BestFitStep{kLift, 0, 2, 2, -1, 3},   // merges with the line made by the lift before
                                 BestFitStep{kPlace, 0, 10, 3, 2, 5},  //
                                 BestFitStep{kPlace, 0, 5, 3, 3, 4},   //
                                 BestFitStep{kLift, 0, 1, 3, -1, 4},   //
                                 BestFitStep{kPlace, 0, 5, 4, 4, 5},   //
                                 BestFitStep{kLift, 3, 5, 4, -1, 5},   // equal neighbours: merges with both
                                 BestFitStep{kPlace, 0, 10, 5, 5, 7}));
  EXPECT_THAT(placement.offsets, ElementsAre(0, 0, 3, 3, 4, 5));
  EXPECT_EQ(placement.height, 7);
  EXPECT_THAT(Validate(instance, placement), IsEmpty());
}

TEST(BestFitTest, OfEqualLifetimesTakesTheLargerThenTheSmallerIndex) {
  Instance instance;
  instance.blocks = {MakeBlock(1, {{0, 4}}), MakeBlock(3, {{0, 4}}), MakeBlock(3, {{0, 4}})};
  EXPECT_THAT(PackBestFit(instance).offsets, ElementsAre(6, 0, 3));
}

TEST(BestFitTest, CarriedBlockIsOneArcAndALineGoesOnAtTheBeginning) {
  // Block 0 is carried over the end, block 1 fills the gap below, block 2 is carried too and lies on block 0 alone.
  Instance instance;
  instance.blocks = {MakeBlock(4, {{0, 3}, {6, 10}}), MakeBlock(4, {{3, 6}}), MakeBlock(1, {{0, 2}, {9, 10}})};
  std::vector<BestFitStep> steps;
  const Placement placement = PackBestFit(instance, &steps);
  EXPECT_THAT(steps, ElementsAre(BestFitStep{kPlace, 0, 10, 0, 0, 4}, BestFitStep{kPlace, 3, 6, 0, 1, 4},
                                 BestFitStep{kPlace, 3, 13, 4, 2, 5}));
  EXPECT_EQ(placement.height, 5);
}

TEST(BestFitTest, PinnedBlockIsAnObstacle) {
  Instance instance;
  instance.blocks = {MakeBlock(2, {{0, 10}}), MakeBlock(3, {{2, 4}}), MakeBlock(4, {{3, 8}})};
  instance.blocks[1].pinned = 3;
  const Placement placement = PackBestFit(instance);
  EXPECT_THAT(placement.offsets, ElementsAre(0, 3, 6));
  EXPECT_THAT(Validate(instance, placement), IsEmpty());
}

TEST(BestFitTest, AlignmentRoundsTheLineUp) {
  Instance instance;
  instance.blocks = {MakeBlock(3, {{0, 10}}), MakeBlock(4, {{0, 5}})};
  instance.blocks[1].alignment = 8;
  EXPECT_THAT(PackBestFit(instance).offsets, ElementsAre(0, 8));
}

// The published procedure written down plainly, on an array of heights by clock value. One interval a block, nothing
// pinned or aligned.
std::vector<BestFitStep> PlainBestFit(const Instance& instance) {
  Clock first = std::numeric_limits<Clock>::max();
  Clock last = 0;
  for (const Block& block : instance.blocks) {
    first = std::min(first, block.residency[0].begin);
    last = std::max(last, block.residency[0].end);
  }
  std::vector<Offset> heights(last, 0);
  std::vector<bool> placed(instance.blocks.size());
  std::vector<BestFitStep> steps;
  while (std::find(placed.begin(), placed.end(), false) != placed.end()) {
    const Clock begin = std::min_element(heights.begin() + first, heights.end()) - heights.begin();
    const Offset height = heights[begin];
    Clock end = begin;
    while (end < last && heights[end] == height) ++end;
    int32_t best = -1;
    const auto key = [&](int32_t i) {
      const Block& block = instance.blocks[i];
      return std::make_tuple(block.residency[0].end - block.residency[0].begin, block.size, -i);
    };
    for (int32_t i = 0; i < static_cast<int32_t>(placed.size()); ++i) {
      const Residency& at = instance.blocks[i].residency[0];
      if (!placed[i] && begin <= at.begin && at.end <= end && (best < 0 || key(i) > key(best))) best = i;
    }
    if (best >= 0) {
      const Residency& at = instance.blocks[best].residency[0];
      placed[best] = true;
      std::fill(heights.begin() + at.begin, heights.begin() + at.end, height + instance.blocks[best].size);
      steps.push_back({kPlace, begin, end, height, best, height + instance.blocks[best].size});
    } else {
      Offset to = std::numeric_limits<Offset>::max();
      if (begin > first) to = std::min(to, heights[begin - 1]);
      if (end < last) to = std::min(to, heights[end]);
      std::fill(heights.begin() + begin, heights.begin() + end, to);
      steps.push_back({kLift, begin, end, height, -1, to});
    }
  }
  return steps;
}

TEST(BestFitPropertyTest, TakesTheStepsOfThePlainProcedure) {
  std::mt19937_64 random(testing::TestSeed());
  for (int run = 0; run < 3000; ++run) {
    testing::InstanceShape shape = testing::RandomShape(&random);
    shape.alignments = shape.carried = shape.gaps = shape.pinned = 0;
    shape.blocks += 1;
    if (run % 2 == 0) shape.largest = 4;  // many equal heights
    const Instance instance = testing::RandomInstance(shape, &random);
    std::vector<BestFitStep> steps;
    const Placement placement = PackBestFit(instance, &steps);
    ASSERT_EQ(steps, PlainBestFit(instance)) << "run " << run;
    ASSERT_THAT(Validate(instance, placement), IsEmpty()) << "run " << run;
  }
}

TEST(BestFitPropertyTest, IsValidWithAllFeatures) {
  std::mt19937_64 random(testing::TestSeed() + 1);
  for (int run = 0; run < 3000; ++run) {
    const Instance instance = testing::RandomInstance(testing::RandomShape(&random), &random);
    ASSERT_THAT(Validate(instance, PackBestFit(instance)), IsEmpty()) << "run " << run;
  }
}

}  // namespace
}  // namespace hotpack
