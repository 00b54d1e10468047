#include "remat/core/simulator.h"

#include <gtest/gtest.h>

#include <string>

#include "packer/bounds.h"
#include "packer/pack.h"
#include "tests/remat/small_graphs.h"

namespace hotpack::remat {
namespace {

Outcome Of(const Graph& graph, std::vector<Action> actions, const Machine& machine = {}) {
  const absl::StatusOr<Outcome> outcome = Simulate(graph, {std::move(actions), {}}, machine);
  EXPECT_TRUE(outcome.ok()) << outcome.status();
  return outcome.ok() ? *outcome : Outcome();
}
std::string FaultOf(const Graph& graph, std::vector<Action> actions, const Machine& machine = {}) {
  const absl::StatusOr<Outcome> outcome = Simulate(graph, {std::move(actions), {}}, machine);
  return outcome.ok() ? "" : std::string(outcome.status().message());
}

TEST(BaselineTest, OfAChain) {
  const Graph graph = Chain(3);
  const absl::StatusOr<Outcome> outcome = Simulate(graph, Baseline(graph));
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(outcome->time, 70);
  EXPECT_EQ(outcome->compute, 70);
  EXPECT_EQ(outcome->runs_again, 0);
  // x0 to x3 and g3 while the loss is computed; x3 is gone, but g2 there, in b3.
  EXPECT_EQ(outcome->live_peak, 500);
}

TEST(BaselineTest, TheProgramMayHoldOnLonger) {
  Graph graph = Chain(2);
  graph.released_after.assign(graph.storages.size(), kNever);
  EXPECT_EQ(Simulate(graph, Baseline(graph, Release::kAsTheProgram))->live_peak, 600);
  EXPECT_EQ(Simulate(graph, Baseline(graph))->live_peak, 400);
}

// x2 is dropped in the forward pass and computed again from x1, x1 from x0: one run more each.
TEST(SimulatorTest, ComputingAgain) {
  const Graph graph = Chain(2);
  const Outcome outcome =
      Of(graph, {Op(0), Op(1), Drop(1), Op(2), Drop(2), Op(0), Op(3), Drop(1), Drop(3), Op(4), Drop(4)});
  EXPECT_EQ(outcome.time, 60);
  EXPECT_EQ(outcome.runs_again, 1);
  EXPECT_EQ(outcome.live_peak, 400);
}

// Time:     compute  f1 0-10, f2 10-20 | loss needs x2 ... ; x1 goes out at 10, takes 50.
TEST(SimulatorTest, CopiesOverlapAndStall) {
  const Graph graph = Chain(2);
  const Machine machine = {.bytes_per_ns_to_host = 2, .bytes_per_ns_to_device = 4};
  // f1, copy of x1 out from 10 to 60; f2 to 20; drop waits until 60; loss to 70; x1 back from 70 to 95; b2 from 95 to
  // 105.
  const Outcome outcome = Of(
      graph, {Op(0), Offload(1), Op(1), Drop(1), Op(2), Drop(2), Prefetch(1), Op(3), Drop(1), Drop(3), Op(4)}, machine);
  EXPECT_EQ(outcome.compute, 50);
  EXPECT_EQ(outcome.time, 115);
  EXPECT_EQ(outcome.copies, 2);
  EXPECT_EQ(outcome.host_peak, 100);
  // The same with the drop after the loss: the copy overlaps with it.
  const Outcome later = Of(
      graph, {Op(0), Offload(1), Op(1), Op(2), Drop(1), Drop(2), Prefetch(1), Op(3), Drop(1), Drop(3), Op(4)}, machine);
  EXPECT_EQ(later.time, 105);
}

// Two copies in one direction follow each other, in two directions they do not.
TEST(SimulatorTest, EachEngineDoesOneCopyAtATime) {
  Graph graph = Chain(2);
  graph.storages[0].kept = true;
  const Machine machine = {.bytes_per_ns_to_host = 1, .bytes_per_ns_to_device = 1};
  const Outcome two = Of(graph, {Op(0), Offload(0), Offload(1), Op(1), Op(2), Op(3), Op(4)}, machine);
  EXPECT_EQ(two.time, 10 + 100 + 100 - 10);  // x0 is given: its copy begins at 0
}

TEST(SimulatorTest, ARunWaitsForTheCopyOfWhatItChanges) {
  Graph graph = Chain(1);
  graph.operators[0].updates = {0};
  graph.operators[0].reads = {};
  const Machine machine = {.bytes_per_ns_to_host = 1, .bytes_per_ns_to_device = 1};
  EXPECT_EQ(Of(graph, {Offload(0), Op(0), Op(1), Op(2)}, machine).time, 100 + 30);
}

TEST(SimulatorTest, WorkspacesAndInPlace) {
  Graph graph = Chain(2);
  graph.operators[1].workspace = 1000;
  EXPECT_EQ(Of(graph, {Op(0), Op(1), Op(2), Op(3), Op(4)}).live_peak, 1300);
  graph.operators[1].workspace = 0;
  graph.operators[3].in_place = {{3, 4}};  // b2 makes g1 where g2 was
  const Outcome outcome = Of(graph, {Op(0), Op(1), Op(2), Drop(2), Op(3, {0}), Drop(1), Op(4)});
  EXPECT_EQ(outcome.live_peak, 400);
  EXPECT_EQ(Of(graph, {Op(0), Op(1), Op(2), Drop(2), Op(3), Drop(3), Drop(1), Op(4)}).live_peak, 400);
  ASSERT_EQ(outcome.residencies.size(), 5u);  // x0 x1 x2 g2 = g1, g0
}

TEST(SimulatorTest, WhatCannotBeDone) {
  const Graph graph = Chain(2);
  EXPECT_EQ(FaultOf(graph, {Op(1)}), "action 0: f2 uses 'x1', which is not on the device");
  EXPECT_EQ(FaultOf(graph, {Drop(1)}), "action 0: drops 'x1', which has no memory on the device");
  EXPECT_EQ(FaultOf(graph, {Drop(0), Op(0)}), "action 1: f1 uses 'x0', which is not on the device");
  EXPECT_EQ(FaultOf(graph, {Prefetch(0)}), "action 0: prefetches 'x0', of which the host has no copy");
  EXPECT_EQ(FaultOf(graph, {Offload(0), Prefetch(0)}), "action 1: prefetches 'x0', which is on the device");
  EXPECT_EQ(FaultOf(graph, {Offload(1)}), "action 0: offloads 'x1', which is not on the device");
  EXPECT_EQ(FaultOf(graph, {Offload(0)}, {.host_memory = 99}), "action 0: offloads 'x0': 100 bytes on the host");
  EXPECT_EQ(FaultOf(graph, {Offload(0), Offload(0), Forget(0), Offload(0), Forget(0), Forget(0)}, {.host_memory = 100}),
            "action 5: forgets 'x0', of which the host has no copy");
  EXPECT_EQ(FaultOf(graph, {Op(5)}), "action 0: there is no 5");
  EXPECT_EQ(FaultOf(graph, {Op(0), Op(1), Op(2), Op(3)}), "operator 4 (b1) never runs");
  EXPECT_EQ(FaultOf(graph, {Op(0), Op(1), Op(2), Op(3), Op(4), Drop(5)}), "at the end 'g0' is not on the device");
  EXPECT_EQ(FaultOf(graph, {Op(0, {0})}), "action 0: f1 has no such pair in place");
}

// Contents copied back return to their place, so their residencies are one block. Recomputed contents may be anywhere.
TEST(InstanceTest, OneOffsetForWhatComesBack) {
  const Graph graph = Chain(2);
  const Outcome swapped = Of(graph, {Op(0), Offload(1), Op(1), Drop(1), Op(2), Prefetch(1), Op(3), Op(4)});
  const Outcome again = Of(graph, {Op(0), Op(1), Drop(1), Op(2), Op(0), Op(3), Op(4)});
  EXPECT_EQ(ToInstance(swapped.residencies).blocks.size(), 6u);
  EXPECT_EQ(ToInstance(again.residencies).blocks.size(), 7u);
  EXPECT_EQ(ToInstance(swapped.residencies).blocks[1].residency.size(), 2u);
  EXPECT_EQ(ToInstance(swapped.residencies).blocks[0].size, 512);
}

// The memory that a is copied from may not be another's before the copy has ended.
TEST(SimulatorTest, WorkingInPlaceWaitsForTheCopyOfWhatItTakesOver) {
  Graph graph;
  graph.storages.resize(2);
  graph.storages[0] = {.name = "a", .bytes = 1200};
  graph.storages[1] = {.name = "b", .bytes = 1200, .kept = true};
  graph.operators.push_back({.name = "make", .cost = 10, .writes = {0}});
  graph.operators.push_back({.name = "relu", .cost = 10, .reads = {0}, .writes = {1}, .in_place = {{0, 1}}});
  const Schedule schedule = {.actions = {{ActionKind::kRun, 0}, {ActionKind::kOffload, 0}, {ActionKind::kRun, 1, {0}}}};
  const absl::StatusOr<Outcome> outcome = Simulate(graph, schedule);
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(outcome->time, 10 + 100 + 10);  // 12 bytes a nanosecond
}

}  // namespace
}  // namespace hotpack::remat
