#include "planner/descent.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "planner/verifier.h"
#include "tests/planner/small_graphs.h"

namespace hotpack::planner {
namespace {

// The fastest plan of at most so many bytes among all ways to bridge all gaps.
Nanoseconds BruteForce(const Graph& graph, const Values& values, Bytes budget) {
  Nanoseconds best = INT64_MAX;
  const auto all = static_cast<size_t>(std::pow(3, values.gaps.size()));
  for (size_t code = 0; code < all; ++code) {
    std::vector<Way> ways;
    for (size_t g = 0, rest = code; g < values.gaps.size(); ++g, rest /= 3) ways.push_back(static_cast<Way>(rest % 3));
    const absl::StatusOr<Outcome> outcome = Simulate(graph, Rebuild(graph, values, ways).schedule);
    if (outcome.ok() && outcome->live_peak <= budget) best = std::min(best, outcome->time);
  }
  return best;
}

Nanoseconds FastestWithin(const Frontier& frontier, Bytes budget) {
  Nanoseconds best = INT64_MAX;
  for (const Plan& plan : frontier.plans) {
    if (plan.live_peak <= budget) best = std::min(best, plan.time);
  }
  return best;
}

TEST(DescentTest, AsFastAsAllPlansOfSmallChains) {
  for (int layers : {2, 3}) {
    Graph graph = Chain(layers);
    graph.operators[0].cost = 30;
    const Values values = ValuesOf(graph);
    const Frontier frontier = Descend(graph, values);
    for (Bytes budget = 300; budget <= 600; budget += 100) {
      EXPECT_EQ(FastestWithin(frontier, budget), BruteForce(graph, values, budget)) << layers << " layers, " << budget << " bytes";
    }
  }
}

TEST(DescentTest, EachPlanIsWhatItSays) {
  const Graph graph = Chain(40);
  const Values values = ValuesOf(graph);
  const Frontier frontier = Descend(graph, values, {.levels = 10, .improvements = 5});
  ASSERT_GT(frontier.plans.size(), 8u);
  for (size_t i = 0; i < frontier.plans.size(); ++i) {
    const Plan& plan = frontier.plans[i];
    const Rebuilt rebuilt = Rebuild(graph, values, plan.ways);
    EXPECT_EQ(Verify(graph, rebuilt.schedule), "");
    EXPECT_EQ(Simulate(graph, rebuilt.schedule)->time, plan.time);
    EXPECT_EQ(Simulate(graph, rebuilt.schedule)->live_peak, plan.live_peak);
    if (i == 0) continue;
    EXPECT_LT(plan.live_peak, frontier.plans[i - 1].live_peak);
    EXPECT_GT(plan.time, frontier.plans[i - 1].time);
  }
  // Within one forward pass more, not far above what a chain of that depth can be brought to.
  EXPECT_LE(frontier.plans.back().live_peak, 2 * 100 * static_cast<Bytes>(std::sqrt(40) + 3));
}

TEST(DescentTest, TheSameAgain) {
  std::mt19937_64 random(9);
  Graph graph = RandomGraph(random, 30);
  while (!Check(graph).ok()) graph = RandomGraph(random, 30);
  const Values values = ValuesOf(graph);
  const Frontier one = Descend(graph, values, {.evaluations = 2000}), other = Descend(graph, values, {.evaluations = 2000});
  ASSERT_EQ(one.plans.size(), other.plans.size());
  for (size_t i = 0; i < one.plans.size(); ++i) EXPECT_EQ(one.plans[i].ways, other.plans[i].ways);
}

TEST(DescentTest, NoPlanTakesLessThanTheLeast) {
  std::mt19937_64 random(4);
  int swaps = 0;
  for (int i = 0; i < 300; ++i) {
    const Graph graph = RandomGraph(random, 2 + i % 30);
    if (!Check(graph).ok()) continue;
    const Values values = ValuesOf(graph);
    for (const bool swap : {false, true}) {
      const Frontier frontier = Descend(graph, values, {.swap = swap, .levels = 3, .improvements = 1, .evaluations = 500});
      EXPECT_EQ(frontier.least, LeastMemory(graph, swap));
      for (const Plan& plan : frontier.plans) {
        EXPECT_GE(plan.live_peak, frontier.least) << i;
        EXPECT_GE(plan.time, TotalCost(graph));
        for (Way way : plan.ways) swaps += way == Way::kSwap ? 1 : 0;
      }
    }
  }
  EXPECT_GT(swaps, 100);
}

}  // namespace
}  // namespace hotpack::planner
