#include "remat/chen/cuts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "remat/chen/mirror.h"
#include "remat/chen/plans.h"
#include "remat/chen/recursion.h"
#include "remat/core/verifier.h"
#include "remat/networks/builder.h"
#include "remat/networks/recurrent.h"
#include "remat/networks/training_graph.h"
#include "tests/remat/small_graphs.h"

namespace hotpack::remat {
namespace {

// Two results in parallel, as an unrolled cell's h and c: each step reads both and makes them again, with more in
// between.
Graph TwoStates(int steps) {
  Graph graph;
  std::vector<StorageId> there;
  const auto storage = [&](Bytes bytes) {
    graph.storages.emplace_back().bytes = bytes;
    graph.storages.back().name = absl::StrCat("s", graph.storages.size());
    return static_cast<StorageId>(graph.storages.size()) - 1;
  };
  const auto add = [&](const std::string& name, std::vector<StorageId> reads, std::vector<StorageId> writes,
                       Phase phase) {
    Operator& op = graph.operators.emplace_back();
    op.name = name;
    op.cost = 10;
    op.reads = std::move(reads);
    op.writes = std::move(writes);
    op.phase = phase;
  };
  StorageId h = storage(100), c = storage(100);
  graph.storages[0].given = graph.storages[1].given = true;
  struct Step {
    StorageId gates, h, c;
  };
  std::vector<Step> made;
  for (int i = 0; i < steps; ++i) {
    const Step step = {storage(400), storage(100), storage(100)};
    add("gates", {h, c}, {step.gates}, Phase::kForward);
    add("c", {step.gates, c}, {step.c}, Phase::kForward);
    add("h", {step.gates, step.c}, {step.h}, Phase::kForward);
    made.push_back(step);
    h = step.h;
    c = step.c;
  }
  StorageId gradient = storage(100);
  add("loss", {h}, {gradient}, Phase::kBackward);
  for (int i = steps - 1; i >= 0; --i) {
    const StorageId next = storage(100);
    add("backward", {gradient, made[static_cast<size_t>(i)].gates, made[static_cast<size_t>(i)].c}, {next},
        Phase::kBackward);
    gradient = next;
  }
  graph.storages.back().kept = true;
  return graph;
}

TEST(CutsTest, BetweenTheCells) {
  const Graph graph = TwoStates(4);
  ASSERT_TRUE(Check(graph).ok()) << Check(graph);
  const Values values = ValuesOf(graph);
  const std::vector<bool> points = SplittingPoints(graph, values);
  EXPECT_EQ(std::count(points.begin(), points.end(), true), 1) << "the first step's gates alone";
  const std::vector<Cut> cuts = NarrowCuts(graph, values, 3);
  ASSERT_EQ(cuts.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    const auto step = static_cast<OperatorId>(3 * i);
    EXPECT_EQ(cuts[i].after, step + 2);
    EXPECT_EQ(cuts[i].makers, (std::vector<OperatorId>{step + 1, step + 2}));
  }
}

TEST(CutsTest, SegmentsKeepAllThatGoesOver) {
  const Graph graph = TwoStates(4);
  const std::vector<Cut> cuts = NarrowCuts(graph, ValuesOf(graph), 3);
  const Segments each = PlanSegments(graph, cuts, 0);
  EXPECT_EQ(each.x, 600);
  EXPECT_EQ(each.y, 600);
  EXPECT_EQ(std::vector<bool>(each.again.begin(), each.again.begin() + 6),
            (std::vector<bool>{true, false, false, true, false, false}));
  const Segments second = PlanSegments(graph, cuts, 600);
  EXPECT_EQ(second.x, 200);
  EXPECT_EQ(second.y, 1200);
}

// A result that crosses several cuts is kept once.
TEST(CutsTest, WhatGoesOnForLong) {
  Graph graph = TwoStates(4);
  graph.storages.push_back(graph.storages[0]);
  graph.storages.back().given = false;
  graph.storages.back().bytes = 50;
  const auto context = static_cast<StorageId>(graph.storages.size()) - 1;
  graph.operators[0].writes.push_back(context);
  for (size_t i = 3; i < 12; i += 3) graph.operators[i].reads.push_back(context);
  ASSERT_TRUE(Check(graph).ok()) << Check(graph);
  const std::vector<Cut> cuts = NarrowCuts(graph, ValuesOf(graph), 3);
  ASSERT_EQ(cuts.size(), 3u);
  EXPECT_EQ(cuts[1].makers, (std::vector<OperatorId>{0, 4, 5}));
  const Segments segments = PlanSegments(graph, cuts, 0);
  EXPECT_EQ(segments.x, 600 + 450) << "with the first step's gates, which the same operator makes";
  EXPECT_FALSE(segments.again[0]);
}

TEST(CutsTest, EverywhereInAChain) {
  const Graph graph = Chain(50);
  EXPECT_EQ(NarrowCuts(graph, ValuesOf(graph)).size(), 49u);  // nothing of the forward pass goes over its end
}

// The splitting points as cuts are Algorithm 3 as published.
TEST(CutsTest, OneResultGoesOver) {
  const Graph graph = Chain(100, 1);
  const std::vector<bool> all(graph.operators.size(), true);
  for (Bytes budget : {0, 5, 10, 99}) {
    const Segments published = PlanSegments(graph, all, budget), cut = PlanSegments(graph, CutsAt(all), budget);
    EXPECT_EQ(cut.x, published.x);
    EXPECT_EQ(cut.y, published.y);
    EXPECT_EQ(cut.again, published.again);
  }
}

// Square root of the length where no single result is a splitting point; 5.3 of the paper: more than four times less.
TEST(CutsTest, LongSequencesNeedTheSquareRoot) {
  Bytes before = 0;
  for (int steps : {64, 256, 1024}) {
    const Graph graph = TwoStates(steps);
    const Values values = ValuesOf(graph);
    const std::vector<MirrorPlan> plans = SearchMirrors(graph, values, NarrowCuts(graph, values, 3));
    const MirrorPlan& plan = LeastOf(plans);
    EXPECT_EQ(Verify(graph, *ScheduleOf(graph, values, plan.mirrored)), "");
    EXPECT_LT(plan.cost, 3 * TotalCost(graph) / 2 + TotalCost(graph) / 3);
    EXPECT_LT(plan.bytes, Allocate(graph, Sharing::kAll).bytes / 4);
    if (before > 0) {
      EXPECT_NEAR(static_cast<double>(plan.bytes) / static_cast<double>(before), 2, 0.4);
    }
    before = plan.bytes;
  }
}

TEST(CutsTest, AnLstmsAreBetweenItsCells) {
  const absl::StatusOr<Network> network =
      Lstm({.layers = 2, .hidden = 32, .steps = 32, .batch = 4, .inputs = 8, .classes = 10});
  ASSERT_TRUE(network.ok());
  TrainingOptions options;
  options.weights = false;
  const absl::StatusOr<Graph> graph = TrainingGraph(*network, options);
  ASSERT_TRUE(graph.ok());
  const Values values = ValuesOf(*graph);
  const std::vector<Cut> cuts = NarrowCuts(*graph, values);
  EXPECT_GE(cuts.size(), 31u);
  const absl::StatusOr<Schedule> schedule = ScheduleByMirror(*graph, values, RecursiveCounts(*graph, cuts, 1, 4));
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  EXPECT_EQ(Verify(*graph, *schedule), "");
  EXPECT_LT(Simulate(*graph, *schedule)->live_peak, Simulate(*graph, Baseline(*graph))->live_peak / 2);
}

}  // namespace
}  // namespace hotpack::remat
