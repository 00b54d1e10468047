#include "tests/remat/chen/chain.h"

#include <gtest/gtest.h>

#include <string>

#include "remat/chen/mirror.h"
#include "remat/chen/plans.h"
#include "remat/chen/segments.h"
#include "remat/core/simulator.h"
#include "remat/core/verifier.h"
#include "tests/remat/small_graphs.h"

namespace hotpack::remat {
namespace {

std::vector<bool> EndsEvery(const Graph& graph, size_t layers) {
  std::vector<bool> ends(graph.operators.size());
  for (size_t i = layers - 1; i < ends.size(); i += layers) ends[i] = true;
  return ends;
}

std::string RunsOf(const Graph& graph, const Schedule& schedule) {
  std::string runs;
  for (const Action& action : schedule.actions) {
    if (action.kind == ActionKind::kRun) runs += graph.operators[static_cast<size_t>(action.target)].name + " ";
  }
  return runs;
}

TEST(Algorithm1Test, ByHand) {
  const Graph graph = Chain(5);
  const absl::StatusOr<Schedule> schedule = ScheduleByAlgorithm1(graph, ValuesOf(graph), EndsEvery(graph, 3));
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  EXPECT_EQ(RunsOf(graph, *schedule), "f1 f2 f3 f4 f5 loss f4 f5 b5 b4 f1 f2 f3 b3 b2 b1 ");
}

// √n segments of √n layers: 2√n results, and twice the forward pass.
TEST(Algorithm1Test, TwoForwardPasses) {
  for (int side : {2, 5, 10, 20}) {
    const Graph graph = Chain(side * side, 1000, 10);
    const absl::StatusOr<Schedule> schedule =
        ScheduleByAlgorithm1(graph, ValuesOf(graph), EndsEvery(graph, static_cast<size_t>(side)));
    ASSERT_TRUE(schedule.ok());
    const absl::StatusOr<Outcome> outcome = Simulate(graph, *schedule);
    ASSERT_TRUE(outcome.ok());
    EXPECT_EQ(outcome->runs_again, side * side);
    EXPECT_LE(outcome->live_peak / 1000, 2 * side + 3);
    EXPECT_GE(outcome->live_peak / 1000, 2 * side);
  }
}

// Algorithm 2 omits operators on which no gradient depends: the last layer of each segment.
TEST(Algorithm1Test, Algorithm2RunsLess) {
  const Graph graph = Chain(30, 1000, 10);
  const Values values = ValuesOf(graph);
  const std::vector<bool> ends = EndsEvery(graph, 6);
  std::vector<bool> again(graph.operators.size());
  for (size_t i = 0; i < 30; ++i) again[i] = !ends[i];
  const absl::StatusOr<Outcome> first = Simulate(graph, *ScheduleByAlgorithm1(graph, values, ends));
  const absl::StatusOr<Outcome> second = Simulate(graph, *ScheduleByMirror(graph, values, CountsOf(again)));
  EXPECT_EQ(first->runs_again, 30);
  EXPECT_EQ(second->runs_again, 25);
  EXPECT_GE(first->live_peak, second->live_peak);
}

TEST(Algorithm1Test, WhatIsNoChain) {
  Graph graph = Chain(6);
  graph.operators[4].reads.push_back(2);
  EXPECT_EQ(ScheduleByAlgorithm1(graph, ValuesOf(graph), EndsEvery(graph, 3)).status().message(),
            "no chain: f5 reads what f2 has made");
  Graph once = Chain(6);
  once.operators[1].once = true;
  const absl::Status refused = ScheduleByAlgorithm1(once, ValuesOf(once), EndsEvery(once, 3)).status();
  EXPECT_NE(refused.message().find("cannot run again"), absl::string_view::npos) << refused;
  Graph random = Chain(6);
  random.operators[1].random = true;
  const absl::StatusOr<Schedule> schedule = ScheduleByAlgorithm1(random, ValuesOf(random), EndsEvery(random, 3));
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  EXPECT_EQ(schedule->saved_states, (std::vector<OperatorId>{1}));
}

}  // namespace
}  // namespace hotpack::remat
