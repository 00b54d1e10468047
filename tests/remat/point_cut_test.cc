#include "remat/core/point_cut.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <vector>

#include "tests/remat/small_graphs.h"
#include "tests/runs.h"

namespace hotpack::remat {
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
  PointCut AtLoss() const {
    return PointCut(graph_, values_, RunOrder(graph_, values_, true), kLoss,
                    static_cast<OperatorId>(graph_.operators.size()));
  }

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

// 100 bytes too much: the hull's corner makes x1, x2 and x3 again.
TEST_F(PointCutTest, ExchangesFindWhatTheHullLeavesOut) {
  for (Operator& op : graph_.operators) op.cost = 1'000'000;
  const auto set = [&](int layer, Bytes bytes, Nanoseconds cost) {
    graph_.storages[static_cast<size_t>(layer)].bytes = bytes;
    graph_.operators[static_cast<size_t>(layer) - 1].cost = cost;
  };
  set(1, 60, 60);
  set(2, 50, 51);
  set(3, 50, 51);
  PointCut cut = AtLoss();
  const Bytes budget = cut.AllHeld() - 100;
  std::optional<PointCut::Corner> corner;
  EXPECT_EQ(cut.TimeWhole(budget, 0,
                          [&](const PointCut::Corner& hull) {
                            corner = hull;
                            return true;
                          }),
            101);  // x1, and 40 bytes of x2
  ASSERT_TRUE(corner.has_value());
  EXPECT_EQ(corner->time, 162);
  for (const PointCut::Corner& from : {*corner, cut.Fastest(), cut.Smallest()}) {
    const std::optional<PointCut::Corner> found = cut.Exchanged(from, budget);
    ASSERT_TRUE(found.has_value()) << from.bytes;
    EXPECT_EQ(found->bytes, budget) << from.bytes;
    EXPECT_EQ(found->time, 102) << from.bytes;
    EXPECT_EQ(found->again, (std::vector<OperatorId>{1, 2})) << from.bytes;
    EXPECT_EQ(found->held.size(), 6u) << from.bytes;
  }
  EXPECT_FALSE(cut.Exchanged(cut.Fastest(), cut.LeastBytes() - 1).has_value());
}

// An operator also runs again for another rerun, if its result is not held.
TEST(ExchangesTest, TakeWhatTheyNeed) {
  Graph graph = Chain(8);
  graph.operators[2].cost = graph.operators[3].cost = 1;
  graph.storages[3].bytes = 5;
  std::erase(graph.operators[13].reads, 3);  // x3 is used up once x4 is made
  const Values values = ValuesOf(graph);
  PointCut cut(graph, values, RunOrder(graph, values, true), kLoss, static_cast<OperatorId>(graph.operators.size()));
  const std::optional<PointCut::Corner> found = cut.Exchanged(cut.Fastest(), cut.AllHeld() - 100);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->again, (std::vector<OperatorId>{2, 3}));
  EXPECT_EQ(found->time, 2);
}

TEST(ExchangesTest, AreWithinTheBudgetAndMostlyTheBest) {
  std::mt19937_64 random(20261123);
  int none = 0, best = 0, above = 0;
  for (int i = 0; i < testing::Runs(3000); ++i) {
    const Graph graph = RandomGraph(random, 8 + i % 12);
    if (!Check(graph).ok()) continue;
    const Values values = ValuesOf(graph);
    const auto count = static_cast<OperatorId>(graph.operators.size());
    PointCut cut(graph, values, RunOrder(graph, values, true), count / 2, count);
    const Bytes least = cut.LeastBytes(), budget = least + (cut.AllHeld() - least) * (i % 10) / 10;
    if (budget >= cut.AllHeld()) continue;
    std::optional<PointCut::Corner> hull;
    const std::optional<Nanoseconds> bound = cut.TimeWhole(budget, 200, [&](const PointCut::Corner& corner) {
      if (!hull) hull = corner;
      return true;
    });
    ASSERT_TRUE(bound.has_value() && hull.has_value()) << i;
    const std::optional<PointCut::Corner> found = cut.Exchanged(*hull, budget);
    ASSERT_TRUE(found.has_value()) << i;  // at least itself
    EXPECT_LE(found->bytes, budget) << i;
    EXPECT_LE(found->time, hull->time) << i;
    EXPECT_GE(found->time, *bound) << i;
    ++(found->time == *bound ? best : above);
    none += *bound == 0 ? 1 : 0;
  }
  EXPECT_GT(best - none, 9 * above);
}

}  // namespace
}  // namespace hotpack::remat
