#include "remat/chen/mirror.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "remat/chen/plans.h"
#include "remat/chen/segments.h"
#include "remat/core/simulator.h"
#include "remat/core/verifier.h"
#include "remat/networks/residual.h"
#include "remat/networks/training_graph.h"
#include "tests/remat/small_graphs.h"

namespace hotpack::remat {
namespace {

std::string OrderOf(const Graph& graph) {
  std::string order;
  for (const Operator& op : graph.operators) absl::StrAppend(&order, order.empty() ? "" : " ", op.name);
  return order;
}

Outcome Simulated(const Graph& graph, const Schedule& schedule) {
  const absl::StatusOr<Outcome> outcome = Simulate(graph, schedule);
  EXPECT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(Verify(graph, schedule), "");
  return outcome.ok() ? *outcome : Outcome();
}

TEST(MirrorTest, NothingMirroredIsTheGraph) {
  const Graph graph = Chain(4);
  const MirroredGraph mirrored = MirrorGraph(graph, ValuesOf(graph), std::vector<int32_t>(graph.operators.size()));
  EXPECT_EQ(OrderOf(mirrored.graph), OrderOf(graph));
  EXPECT_EQ(mirrored.graph.storages.size(), graph.storages.size());
}

// Figure 3: two segments, the first one's result kept.
TEST(MirrorTest, OrderOfAChain) {
  const Graph graph = Chain(6);
  const MirroredGraph mirrored = MirrorGraph(graph, ValuesOf(graph), {1, 1, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0});
  EXPECT_EQ(OrderOf(mirrored.graph), "f1 f2 f3 f4 f5 f6 loss f4' f5' b6 b5 b4 f1' f2' b3 b2 b1");
  EXPECT_TRUE(Check(mirrored.graph).ok());
  EXPECT_EQ(mirrored.graph.operators[7].reads, (std::vector<StorageId>{3}));  // f4' reads x3 itself
  EXPECT_EQ(mirrored.graph.operators[8].reads, mirrored.graph.operators[7].writes);
  EXPECT_TRUE(mirrored.is_copy[7]);
  EXPECT_EQ(mirrored.operator_of[7], 3);
}

// m = 2: the second copy begins from the first copy of operators with m = 1.
TEST(MirrorTest, TwoCopies) {
  const Graph graph = Chain(6);
  const MirroredGraph mirrored = MirrorGraph(graph, ValuesOf(graph), {2, 2, 1, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0});
  EXPECT_EQ(OrderOf(mirrored.graph), "f1 f2 f3 f4 f5 f6 loss f1' f2' f3' f4'' f5'' b6 b5 b4 f1'' f2'' b3 b2 b1");
}

// x1's last copy is there when f2's copy wants the first one: the same contents, so nothing runs for it.
TEST(MirrorTest, CopiesOfTheSameAreOne) {
  Graph graph = Chain(2);
  graph.operators.resize(2);
  for (size_t id = 3; id < graph.storages.size(); ++id) graph.storages[id].kept = true;
  graph.storages[2].kept = false;
  const auto add = [&graph](const char* name, StorageId read, StorageId made) {
    Operator& op = graph.operators.emplace_back();
    op.name = name;
    op.reads = {read};
    op.writes = {made};
    op.phase = Phase::kBackward;
  };
  add("b1", 1, 3);
  add("b2", 2, 4);
  add("b3", 1, 5);
  ASSERT_TRUE(Check(graph).ok()) << Check(graph);
  const Values values = ValuesOf(graph);
  const MirroredGraph mirrored = MirrorGraph(graph, values, {2, 1, 0, 0, 0});
  EXPECT_EQ(OrderOf(mirrored.graph), "f1 f2 f1'' b1 f1' f2' b2 b3");
  EXPECT_EQ(Simulated(graph, *ScheduleOf(graph, values, mirrored)).runs_again, 2);
}

TEST(MirrorTest, WhatCannotRunAgainIsKept) {
  Graph graph = Chain(4);
  graph.operators[1].once = true;
  graph.operators[3].updates = graph.operators[3].reads;  // changes x3, which f4's copy would find changed
  graph.operators[3].reads.clear();
  graph.operators[5].reads = {8 - 3};  // b4 does without it
  const MirroredGraph mirrored = MirrorGraph(graph, ValuesOf(graph), {1, 1, 1, 1, 0, 0, 0, 0, 0});
  EXPECT_EQ(mirrored.counts, (std::vector<int32_t>{1, 0, 1, 0, 0, 0, 0, 0, 0}));
  Graph overwritten = Chain(4);
  overwritten.operators[2].writes.push_back(1);  // f3 makes x1 again: what f2 has read is gone
  EXPECT_EQ(MirrorGraph(overwritten, ValuesOf(overwritten), {0, 1, 0, 0, 0, 0, 0, 0, 0}).counts[1], 0);
}

TEST(MirrorTest, ARandomOperatorLeavesItsState) {
  Graph graph = Chain(3);
  graph.operators[0].random = true;
  const MirroredGraph mirrored = MirrorGraph(graph, ValuesOf(graph), {1, 0, 0, 0, 0, 0, 0});
  ASSERT_EQ(OrderOf(mirrored.graph), "f1 f2 f3 loss b3 f1' b2 b1");
  const StorageId state = mirrored.state_of[0];
  ASSERT_GE(state, 0);
  EXPECT_EQ(mirrored.graph.storages[static_cast<size_t>(state)].bytes, kRandomStateBytes);
  EXPECT_EQ(mirrored.state_of[5], state);
  EXPECT_FALSE(mirrored.graph.operators[5].random);
  const absl::StatusOr<Schedule> schedule = ScheduleOf(graph, ValuesOf(graph), mirrored);
  ASSERT_TRUE(schedule.ok());
  EXPECT_EQ(schedule->saved_states, (std::vector<OperatorId>{0}));
}

// Compared with BuildSchedule() for the same m: the same time and the same memory.
void ExpectLikeRebuild(const Graph& graph, const std::vector<bool>& candidates, Bytes budget) {
  const Values values = ValuesOf(graph);
  Segments segments = PlanSegments(graph, candidates, budget);
  for (size_t v = 0; v < values.values.size(); ++v) {  // BuildSchedule() does not drop the loss's operands at once
    const Value& value = values.values[v];
    const bool at_once = value.maker >= 0 && !value.uses.empty() && value.uses[0] == value.maker + 1;
    if (!at_once || graph.operators[static_cast<size_t>(value.uses[0])].phase == Phase::kForward) continue;
    segments.again[static_cast<size_t>(value.maker)] = false;
  }
  const std::vector<GapAction> ways = DropForward(graph, values, segments.again);
  const Outcome rebuilt = Simulated(graph, BuildSchedule(graph, values, ways, {}, &segments.again).schedule);
  const MirroredGraph mirrored = MirrorGraph(graph, values, CountsOf(segments.again));
  EXPECT_TRUE(Check(mirrored.graph).ok());
  EXPECT_EQ(TotalCost(mirrored.graph), rebuilt.time);
  const absl::StatusOr<Schedule> schedule = ScheduleOf(graph, values, mirrored);
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  const Outcome outcome = Simulated(graph, *schedule);
  EXPECT_EQ(outcome.time, rebuilt.time);
  EXPECT_EQ(outcome.live_peak, rebuilt.live_peak);
  EXPECT_EQ(outcome.runs_again, rebuilt.runs_again);
  EXPECT_EQ(Simulated(mirrored.graph, Baseline(mirrored.graph)).time, rebuilt.time);
}

TEST(MirrorTest, TheSameAsRebuildOnChains) {
  for (int layers : {1, 2, 7, 40}) {
    const Graph graph = Chain(layers, 100);
    for (Bytes budget : {0, 150, 350, 1000})
      ExpectLikeRebuild(graph, std::vector<bool>(graph.operators.size(), true), budget);
  }
}

TEST(MirrorTest, TheSameAsRebuildOnAResidualNetwork) {
  const absl::StatusOr<Network> network = ResNet({.stages = {3, 4, 6, 3}, .batch = 2, .image = 64});
  ASSERT_TRUE(network.ok());
  for (bool weights : {false, true}) {
    TrainingOptions options;
    options.weights = weights;
    const absl::StatusOr<Graph> graph = TrainingGraph(*network, options);
    ASSERT_TRUE(graph.ok());
    const std::vector<bool> points = SplittingPoints(*graph, ValuesOf(*graph));
    for (Bytes budget : {Bytes{0}, Bytes{4} << 20, Bytes{20} << 20}) ExpectLikeRebuild(*graph, points, budget);
  }
}

TEST(MirrorTest, AnyCountsAnyGraph) {
  std::mt19937_64 random(11);
  int64_t copies = 0, schedules = 0, refused = 0;
  for (int i = 0; i < 6000; ++i) {
    const Graph graph = RandomGraph(random, 2 + i % 40);
    if (!Check(graph).ok()) continue;
    const Values values = ValuesOf(graph);
    std::vector<int32_t> counts(graph.operators.size());
    for (int32_t& count : counts) count = static_cast<int32_t>(random() % 4);
    const MirroredGraph mirrored = MirrorGraph(graph, values, counts);
    ASSERT_TRUE(Check(mirrored.graph).ok()) << Check(mirrored.graph) << " " << i;
    ASSERT_TRUE(Simulate(mirrored.graph, Baseline(mirrored.graph)).ok()) << i;
    copies += static_cast<int64_t>(mirrored.graph.operators.size() - graph.operators.size());
    const absl::StatusOr<Schedule> schedule = ScheduleOf(graph, values, mirrored);
    if (!schedule.ok()) {
      EXPECT_NE(schedule.status().message().find("two contents"), absl::string_view::npos);
      ++refused;
      continue;
    }
    ASSERT_EQ(Verify(graph, *schedule), "") << i;
    ASSERT_TRUE(Simulate(graph, *schedule).ok()) << i;
    ++schedules;
  }
  EXPECT_GT(copies, 2000);
  EXPECT_GT(schedules, 3000);
  EXPECT_LT(refused, schedules / 3);
}

}  // namespace
}  // namespace hotpack::remat
