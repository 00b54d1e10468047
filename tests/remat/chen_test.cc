#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "remat/chen/segments.h"
#include "remat/core/verifier.h"
#include "tests/remat/small_graphs.h"

namespace hotpack::remat {
namespace {

// A hundred layers of one byte, each a candidate: a segment ends at the first layer by which it has more than B.
TEST(ChenTest, AlgorithmThreeByHand) {
  const Graph graph = Chain(100, 1);
  const Segments segments = PlanSegments(graph, std::vector<bool>(graph.operators.size(), true), 10);
  EXPECT_EQ(segments.x, 9);
  EXPECT_EQ(segments.y, 11);
  for (size_t i = 0; i < 100; ++i) EXPECT_EQ(segments.again[i], i % 11 != 10) << i;
  EXPECT_FALSE(segments.again[100]);  // not of the forward pass
  const Segments all = PlanSegments(graph, std::vector<bool>(graph.operators.size(), true), 0);
  EXPECT_EQ(all.x, 100);
  EXPECT_EQ(all.y, 1);
  std::vector<bool> every_tenth(graph.operators.size());
  for (size_t i = 9; i < 100; i += 10) every_tenth[i] = true;
  EXPECT_EQ(PlanSegments(graph, every_tenth, 10).x, 5);
  EXPECT_EQ(PlanSegments(graph, every_tenth, 10).y, 20);
}

TEST(ChenTest, SplittingPointsOfAChainAndOfADetour) {
  Graph graph = Chain(6);
  std::vector<bool> points = SplittingPoints(graph, ValuesOf(graph));
  for (size_t i = 0; i < 5; ++i) EXPECT_TRUE(points[i]) << i;
  graph.operators[4].reads.push_back(2);  // x2 goes past f3 and f4 to f5
  points = SplittingPoints(graph, ValuesOf(graph));
  EXPECT_EQ(std::vector<bool>(points.begin(), points.begin() + 5), (std::vector<bool>{true, true, false, false, true}));
}

// One forward pass more at most, memory that grows with the square root of the depth.
TEST(ChenTest, MemoryOfAChainGrowsWithTheSquareRoot) {
  double before = 0;
  for (int layers : {100, 400, 1600}) {
    const Graph graph = Chain(layers, 1000);
    const Values values = ValuesOf(graph);
    Bytes least = INT64_MAX;
    const std::vector<ChenPlan> plans = SearchSegments(graph, values);
    ASSERT_EQ(plans.size(), 8u);
    for (const ChenPlan& plan : plans) {
      EXPECT_EQ(Verify(graph, ScheduleOf(graph, values, plan)), "");
      EXPECT_LE(plan.outcome.runs_again, layers);
      least = std::min(least, plan.outcome.live_peak);
    }
    const double storages = static_cast<double>(least) / 1000;
    EXPECT_LE(storages, 2 * std::sqrt(layers) + 5) << layers;
    if (before > 0) {
      EXPECT_NEAR(storages / before, 2, 0.25) << "four times as deep";
    }
    before = storages;
  }
}

TEST(ChenTest, CheapResultsAreComputedAgain) {
  Graph graph = Chain(6);
  for (size_t i : {0, 2, 4}) graph.operators[i].heavy = true;
  const Values values = ValuesOf(graph);
  const std::vector<bool> cheap = CheapOperators(graph);
  const BuiltSchedule rebuilt = BuildSchedule(graph, values, DropForward(graph, values, cheap), {}, &cheap);
  const absl::StatusOr<Outcome> outcome = Simulate(graph, rebuilt.schedule);
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome->runs_again, 2);  // x2, x4; x6 is used at once
  EXPECT_EQ(Verify(graph, rebuilt.schedule), "");
}

}  // namespace
}  // namespace hotpack::remat
