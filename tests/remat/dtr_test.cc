#include "remat/baselines/dtr.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "remat/core/simulator.h"
#include "remat/core/verifier.h"
#include "tests/remat/small_graphs.h"
#include "tests/runs.h"

namespace hotpack::remat {
namespace {

TEST(DtrTest, WithAllMemoryItIsTheProgram) {
  const Graph graph = Chain(8);
  const absl::StatusOr<Schedule> schedule = ScheduleByDtr(graph, ValuesOf(graph), 1 << 20);
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  EXPECT_EQ(Simulate(graph, *schedule)->runs_again, 0);
}

// Two layers, room for three storages and the gradient that comes: x1 is the only one that may go, when the loss is
// made.
TEST(DtrTest, ByHand) {
  const Graph graph = Chain(2);
  const absl::StatusOr<Schedule> schedule = ScheduleByDtr(graph, ValuesOf(graph), 300);
  EXPECT_FALSE(schedule.ok());  // b2 needs x0 (given), x1, g2 and g1 at once
  const absl::StatusOr<Schedule> four = ScheduleByDtr(graph, ValuesOf(graph), 400);
  ASSERT_TRUE(four.ok()) << four.status();
  EXPECT_EQ(Simulate(graph, *four)->runs_again, 0);
}

// h prefers large, cheap and stale values: of two candidates the cheap one is evicted.
TEST(DtrTest, TheCheapOneGoes) {
  Graph graph = Chain(6);
  graph.operators[1].cost = 1000;  // x2; x1 costs 10
  const Values values = ValuesOf(graph);
  const absl::StatusOr<Schedule> schedule =
      ScheduleByDtr(graph, values, Simulate(graph, Baseline(graph))->live_peak - 100);
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  for (const Action& action : schedule->actions) {
    if (action.kind != ActionKind::kDrop) continue;
    EXPECT_EQ(action.target, 1);
    break;
  }
}

TEST(DtrTest, KeepsToTheBudgetAndComputesTheSame) {
  std::mt19937_64 random(3);
  int made = 0, again = 0;
  for (int i = 0; i < 3000; ++i) {
    const Graph graph = RandomGraph(random, 2 + i % 40);
    if (!Check(graph).ok()) continue;
    const Values values = ValuesOf(graph);
    const Bytes budget = Simulate(graph, Baseline(graph))->live_peak * static_cast<Bytes>(70 + random() % 40) / 100;
    const absl::StatusOr<Schedule> schedule = ScheduleByDtr(graph, values, budget);
    if (!schedule.ok()) continue;
    ++made;
    const absl::StatusOr<Outcome> outcome = Simulate(graph, *schedule);
    ASSERT_TRUE(outcome.ok()) << outcome.status() << " " << i;
    ASSERT_EQ(Verify(graph, *schedule), "") << i;
    EXPECT_LE(outcome->live_peak, budget) << i;
    again += static_cast<int>(outcome->runs_again);
  }
  EXPECT_GT(made, 500);
  EXPECT_GT(again, 100);
}

// With little memory a large graph would have too many runs to wait for and to write down.
// Up to the operator after which the program frees it, and not while room is made for that one.
TEST(DtrTest, WhatTheProgramHoldsStays) {
  std::mt19937_64 random(5);
  int planned = 0, recomputed = 0;
  for (int i = 0; i < testing::Runs(300); ++i) {
    Graph graph = Chain(6, 100);
    const std::vector<std::vector<OperatorId>> uses = UsesOf(graph);
    graph.released_after.assign(graph.storages.size(), kNever);
    for (size_t id = 0; id < graph.storages.size(); ++id) {
      if (graph.storages[id].kept || uses[id].empty()) continue;
      graph.storages[id].held = random() % 3 == 0;
      const auto later = static_cast<OperatorId>(random() % 3);
      graph.released_after[id] = std::min(static_cast<OperatorId>(graph.operators.size()) - 1, uses[id].back() + later);
    }
    for (Bytes budget = 400; budget <= 900; budget += 100) {
      const absl::StatusOr<Schedule> schedule = ScheduleByDtr(graph, ValuesOf(graph), budget);
      if (!schedule.ok()) continue;
      EXPECT_EQ(Verify(graph, *schedule), "") << i << " " << budget;
      const absl::StatusOr<Outcome> outcome = Simulate(graph, *schedule);
      ASSERT_TRUE(outcome.ok()) << outcome.status();
      EXPECT_LE(outcome->live_peak, budget);
      ++planned;
      recomputed += outcome->runs_again > 0 ? 1 : 0;
    }
  }
  EXPECT_GT(planned, testing::Runs(200));
  EXPECT_GT(recomputed, testing::Runs(100));
}

TEST(DtrTest, GivesUpWhatWouldNotEnd) {
  const Graph graph = Chain(1000);
  const Values values = ValuesOf(graph);
  EXPECT_TRUE(ScheduleByDtr(graph, values, 1500, 3).ok());
  const absl::StatusOr<Schedule> schedule = ScheduleByDtr(graph, values, 1500, 2);
  EXPECT_EQ(schedule.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(std::string(schedule.status().message()), "it computes the same over and over again");
}

}  // namespace
}  // namespace hotpack::remat
