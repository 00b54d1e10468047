#include "planner/point_cut.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "tests/planner/small_graphs.h"

namespace hotpack::planner {
namespace {

constexpr OperatorId kLoss = 8;  // of Chain(8)

// The contents of a storage that nothing changes.
ValueId ValueIn(const Values& values, StorageId storage) {
  for (size_t v = 0; v < values.values.size(); ++v) {
    if (values.values[v].storage == storage) return static_cast<ValueId>(v);
  }
  return -1;
}

class PointCutTest : public ::testing::Test {
 protected:
  PointCut AtLoss() const { return PointCut(graph_, values_, RunOrder(graph_, values_, true), kLoss, static_cast<OperatorId>(graph_.operators.size())); }

  Graph graph_ = Chain(8);  // 100 bytes and 10 ns each; at the loss x8 and g8 are there in any case
  const Values values_ = ValuesOf(graph_);
};

TEST_F(PointCutTest, AllHeldAndNothingAgain) {
  const PointCut::Corner corner = AtLoss().Fastest();
  EXPECT_EQ(corner.time, 0);
  EXPECT_EQ(corner.bytes, 1000);  // x0 to x8, g8
  EXPECT_TRUE(corner.again.empty());
  EXPECT_EQ(corner.held.size(), 8u);
  EXPECT_EQ(corner.bytes, AtLoss().AllHeld());
}

TEST_F(PointCutTest, NothingHeldAndAllAgain) {
  const PointCut::Corner corner = AtLoss().Smallest();
  EXPECT_EQ(corner.bytes, 300);  // x0, which is given
  EXPECT_EQ(corner.time, 70);
  EXPECT_EQ(corner.again, (std::vector<OperatorId>{0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(corner.held, (std::vector<ValueId>{ValueIn(values_, 0)}));
}

TEST_F(PointCutTest, WhatIsHeldIsNotMadeAgain) {
  PointCut cut = AtLoss();
  cut.Hold({ValueIn(values_, 4), ValueIn(values_, 8)});  // x8 is there as it is
  const PointCut::Corner corner = cut.Smallest();
  EXPECT_EQ(corner.bytes, 400);
  EXPECT_EQ(corner.time, 60);
  EXPECT_EQ(corner.again, (std::vector<OperatorId>{0, 1, 2, 4, 5, 6}));
  EXPECT_EQ(cut.AllHeld(), 1000);
}

TEST_F(PointCutTest, TheCornerBetweenTwoIsTheBestForTheirPrice) {
  graph_.operators[2].cost = 1000;  // x3 is worth its bytes
  PointCut cut = AtLoss();
  const PointCut::Corner above = cut.Fastest(), below = cut.Smallest();
  EXPECT_EQ(below.time, 1060);
  std::optional<PointCut::Corner> corner = cut.Between(above, below);
  ASSERT_TRUE(corner.has_value());
  std::sort(corner->held.begin(), corner->held.end());
  EXPECT_EQ(corner->bytes, 400);
  EXPECT_EQ(corner->time, 60);
  EXPECT_EQ(corner->held, (std::vector<ValueId>{ValueIn(values_, 0), ValueIn(values_, 3)}));
  EXPECT_FALSE(cut.Between(above, *corner).has_value());  // the others are alike: all between lies on the line
  EXPECT_FALSE(cut.Between(*corner, below).has_value());
}

}  // namespace
}  // namespace hotpack::planner
