#include "remat/dqn/operations.h"

#include <gtest/gtest.h>

#include <set>

#include "remat/dqn/dqn.h"
#include "remat/dqn/environment.h"
#include "tests/remat/small_graphs.h"

namespace hotpack::remat {
namespace {

TEST(OperationsTest, AChainByHand) {
  const Graph graph = Chain(2);
  const Sequence sequence = SequenceOf(graph, ValuesOf(graph));
  using enum OperationKind;
  std::vector<OperationKind> kinds;
  for (const Operation& operation : sequence.operations) kinds.push_back(operation.kind);
  // f1, f2, loss; x2 is freed after the loss; b2, b1, each with the variables freed after it
  const std::vector<OperationKind> expected = {kMalloc, kRead, kWrite,  kMalloc, kRead, kWrite, kMalloc, kRead,
                                               kWrite,  kFree, kMalloc, kRead,   kRead, kWrite, kFree,   kFree,
                                               kMalloc, kRead, kRead,   kWrite,  kFree, kFree};
  EXPECT_EQ(kinds, expected);
  EXPECT_EQ(sequence.operations[2].duration, 10);
  EXPECT_EQ(sequence.operations[1].duration, 0);
  // x0 from f1 to b1, x1 from f2 to b2; x2 is used at once.
  ASSERT_EQ(sequence.absences.size(), 2u);
  EXPECT_EQ(sequence.absences[0].open, 1);  // while it is read
  EXPECT_EQ(sequence.absences[0].after, 2);
  EXPECT_EQ(sequence.absences[0].before, 16);
  EXPECT_EQ(sequence.absences[0].offload_node, 1);
  EXPECT_EQ(sequence.absences[0].remove_node, -1);  // it is given
  EXPECT_EQ(sequence.absences[1].open, 4);
  EXPECT_EQ(sequence.absences[1].after, 5);
  EXPECT_EQ(sequence.absences[1].before, 10);
  EXPECT_EQ(sequence.absences[1].offload_node, 4);
  EXPECT_EQ(sequence.absences[1].remove_node, 2);  // node 0 allocates it, and stands for doing nothing: the write
}

TEST(OperationsTest, NoNodeStandsForTwoActions) {
  std::mt19937_64 random(12);
  int absences = 0;
  for (int i = 0; i < 200; ++i) {
    const Graph graph = RandomGraph(random, 2 + i % 40);
    if (!Check(graph).ok()) continue;
    const Sequence sequence = SequenceOf(graph, ValuesOf(graph));
    std::set<int32_t> stands = {0};
    for (const Absence& absence : sequence.absences) {
      ++absences;
      EXPECT_LE(absence.after, absence.before);
      for (int32_t node : {absence.offload_node, absence.remove_node}) {
        if (node < 0) continue;
        EXPECT_TRUE(stands.insert(node).second) << node;
        const Variable& of =
            sequence.variables[static_cast<size_t>(sequence.operations[static_cast<size_t>(node)].variable)];
        EXPECT_EQ(of.memory, sequence.variables[static_cast<size_t>(absence.variable)].memory);
      }
    }
  }
  EXPECT_GT(absences, 300);
}

// Without actions the environment has the simulator's memory and time.
TEST(OperationsTest, TheProgramAsItIs) {
  std::mt19937_64 random(5);
  int checked = 0;
  for (int i = 0; i < 300; ++i) {
    const Graph graph = RandomGraph(random, 2 + i % 40);
    if (!Check(graph).ok()) continue;
    const Values values = ValuesOf(graph);
    const Sequence sequence = SequenceOf(graph, values);
    const absl::StatusOr<Outcome> outcome = Simulate(
        graph, BuildSchedule(graph, values, std::vector<GapAction>(values.gaps.size(), GapAction::kKeep)).schedule);
    ASSERT_TRUE(outcome.ok());
    const Environment environment(sequence, INT64_MAX);
    EXPECT_EQ(environment.peak(), outcome->live_peak) << i;
    EXPECT_EQ(environment.duration(), outcome->time) << i;
    ++checked;
  }
  EXPECT_GT(checked, 200);
}

// A variable removed from a chain costs the same memory and time in the environment as in the simulator.
TEST(OperationsTest, WhatIsMadeAgainAsTheSimulatorHasIt) {
  std::mt19937_64 random(8);
  for (int i = 0; i < 300; ++i) {
    Graph graph = Chain(3 + i % 12);
    for (Operator& op : graph.operators) op.cost = static_cast<Nanoseconds>(1 + random() % 50);
    for (Storage& storage : graph.storages) storage.bytes = static_cast<Bytes>(50 + random() % 100);
    const Values values = ValuesOf(graph);
    const Sequence sequence = SequenceOf(graph, values);
    Environment environment(sequence, INT64_MAX - 1);
    std::vector<AgentAction> actions;
    // All at their own nodes, as far as the program goes forward.
    for (size_t a = 0; a < sequence.absences.size(); ++a) {
      if (sequence.absences[a].remove_node < 0 || random() % 2 == 0) continue;
      while (environment.node() < sequence.absences[a].open) environment.Step({});
      actions.push_back({Deed::kRemove, static_cast<int32_t>(a)});
      environment.Step(actions.back());
    }
    Environment again(sequence, INT64_MAX - 1);
    const absl::StatusOr<Outcome> outcome =
        Simulate(graph, BuildSchedule(graph, values, WaysOf(sequence, values, actions)).schedule);
    ASSERT_TRUE(outcome.ok());
    EXPECT_EQ(environment.duration() + environment.overhead(), outcome->time) << i;
    EXPECT_LE(environment.peak(), outcome->live_peak) << i;  // of the rest of the step
  }
}

TEST(OperationsTest, SmallStoragesAreAlwaysThere) {
  Graph graph = Chain(3, 1'000'000);
  graph.storages[1].bytes = 10;  // x1
  const Sequence sequence = SequenceOf(graph, ValuesOf(graph));
  EXPECT_EQ(sequence.always, 10);
  for (const Operation& operation : sequence.operations) {
    EXPECT_NE(sequence.variables[static_cast<size_t>(operation.variable)].memory, 1);
  }
}

}  // namespace
}  // namespace hotpack::remat
