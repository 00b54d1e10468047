#include "remat/dqn/dqn.h"

#include <gtest/gtest.h>

#include <string>

#include "remat/core/verifier.h"
#include "tests/remat/small_graphs.h"
#include "tests/runs.h"

namespace hotpack::remat {
namespace {

// A chain with heavy and cheap layers, in microseconds, so that transfers matter.
Graph Layers(int layers) {
  Graph graph = Chain(layers, 1'200'000, 50'000);
  for (size_t i = 0; i < graph.operators.size(); i += 2)
    graph.operators[i].cost = 300'000, graph.operators[i].heavy = true;
  return graph;
}

TEST(DqnTest, PlansFitAndCompute) {
  const Graph graph = Layers(16);
  const Values values = ValuesOf(graph);
  const Bytes peak =
      Simulate(graph,
               BuildSchedule(graph, values, std::vector<GapAction>(values.gaps.size(), GapAction::kKeep)).schedule)
          ->live_peak;
  for (const int percent : {100, 80, 60, 50}) {
    const Bytes budget = peak * percent / 100;
    const absl::StatusOr<DqnPlan> plan = PlanByDqn(graph, values, budget, {.learning = {.episodes = 30}});
    ASSERT_TRUE(plan.ok()) << percent << ": " << plan.status();
    EXPECT_EQ(Verify(graph, plan->schedule), "");
    const absl::StatusOr<Outcome> outcome = Simulate(graph, plan->schedule);
    ASSERT_TRUE(outcome.ok());
    EXPECT_LE(outcome->live_peak, budget);
    EXPECT_EQ(outcome->time, plan->outcome.time);
    EXPECT_EQ(plan->episodes, percent == 100 ? 0 : 30);
    EXPECT_LT(static_cast<double>(outcome->time), 1.3 * static_cast<double>(TotalCost(graph))) << percent;
  }
}

TEST(DqnTest, TooLittleMemoryIsAnErrorWithWhatWasReached) {
  const Graph graph = Layers(6);
  const Values values = ValuesOf(graph);
  const absl::StatusOr<DqnPlan> plan = PlanByDqn(graph, values, 2'000'000, {.learning = {.episodes = 5}});
  ASSERT_EQ(plan.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(plan.status().message().find("a budget of 2000000 bytes"), std::string::npos) << plan.status();
}

TEST(DqnTest, PlansOfDrawnGraphs) {
  std::mt19937_64 random(14);
  int planned = 0, changed = 0;
  for (int i = 0; i < testing::Runs(300); ++i) {
    const Graph graph = RandomGraph(random, 4 + i % 40);
    if (!Check(graph).ok()) continue;
    const Values values = ValuesOf(graph);
    const Bytes peak = Simulate(graph, Baseline(graph))->live_peak;
    const Bytes budget = peak * (70 + i % 30) / 100;
    const absl::StatusOr<DqnPlan> plan =
        PlanByDqn(graph, values, budget, {.learning = {.episodes = 4, .seed = static_cast<uint64_t>(i)}});
    if (!plan.ok()) continue;
    ++planned;
    changed += plan->outcome.runs_again + plan->outcome.copies > 0 ? 1 : 0;
    EXPECT_EQ(Verify(graph, plan->schedule), "") << i;
    EXPECT_LE(Simulate(graph, plan->schedule)->live_peak, budget) << i;
  }
  EXPECT_GT(planned, testing::Runs(60));
  EXPECT_GT(changed, testing::Runs(15));
}

// "We can train a DQN on a small graph and fine-tune on a large graph" (section 4.4.2): weights do not depend on the
// number of nodes.
TEST(DqnTest, WhatWasLearntWithASmallGraphStartsALargeOne) {
  const Graph small = Layers(8), large = Layers(40);
  const Values of_small = ValuesOf(small), of_large = ValuesOf(large);
  const absl::StatusOr<DqnPlan> first = PlanByDqn(small, of_small, 7'200'000, {.learning = {.episodes = 60}});
  ASSERT_TRUE(first.ok()) << first.status();
  DqnOptions options = {.learning = {.episodes = 10}};
  const absl::StatusOr<DqnPlan> drawn = PlanByDqn(large, of_large, 30'000'000, options);
  options.start = &first->weights;
  const absl::StatusOr<DqnPlan> tuned = PlanByDqn(large, of_large, 30'000'000, options);
  ASSERT_TRUE(drawn.ok() && tuned.ok());
  EXPECT_EQ(Verify(large, tuned->schedule), "");
  EXPECT_NE(tuned->overheads, drawn->overheads);
  EXPECT_EQ(tuned->episodes, 10);
}

}  // namespace
}  // namespace hotpack::remat
