#include "remat/baselines/echo.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "packer/pack.h"
#include "remat/core/verifier.h"
#include "tests/remat/small_graphs.h"

namespace hotpack::remat {
namespace {

class Builder {
 public:
  StorageId Make(const std::string& name, Bytes bytes, bool given = false) {
    Storage storage;
    storage.name = name;
    storage.bytes = bytes;
    storage.given = given;
    graph.storages.push_back(storage);
    return static_cast<StorageId>(graph.storages.size() - 1);
  }
  StorageId Do(const std::string& name, std::vector<StorageId> reads, Bytes bytes, Phase phase = Phase::kForward) {
    const StorageId made = Make(absl::StrCat(name, ".out"), bytes);
    Operator op;
    op.name = name;
    op.cost = name.starts_with("fc") ? 100 : 1;
    op.heavy = name.starts_with("fc");
    op.reads = std::move(reads);
    op.writes = {made};
    op.phase = phase;
    graph.operators.push_back(op);
    return made;
  }
  Graph graph;
};

int Count(const std::vector<bool>& flags) { return static_cast<int>(std::count(flags.begin(), flags.end(), true)); }

// Figure 12: tanh(X + Y). Two inputs would be kept so that one result, or none, is not: nothing is computed again.
TEST(EchoTest, Figure12) {
  Builder b;
  const StorageId x = b.Make("x", 8, true);
  const StorageId left = b.Do("fc1", {x}, 1000), right = b.Do("fc2", {x}, 1000);
  const StorageId sum = b.Do("add", {left, right}, 1000);
  const StorageId out = b.Do("tanh", {sum}, 1000);
  const StorageId loss = b.Do("fc3", {out}, 8);
  const StorageId gradient = b.Do("fc3_grad", {loss, out}, 1000, Phase::kBackward);
  const StorageId at_sum = b.Do("tanh_grad", {out, gradient}, 1000, Phase::kBackward);
  b.graph.storages[static_cast<size_t>(b.Do("fc1_grad", {at_sum, x}, 8, Phase::kBackward))].kept = true;
  ASSERT_TRUE(Check(b.graph).ok()) << Check(b.graph);
  const EchoPlan plan = PlanByEcho(b.graph, ValuesOf(b.graph));
  EXPECT_EQ(Count(plan.again), 0);
  EXPECT_EQ(plan.subgraphs, 1);
}

// Figure 13: T results of [T x N], each of one [N] and all of one [T x N].
Graph Broadcasts(int t, Bytes n) {
  Builder b;
  const StorageId x = b.Make("x", 8, true);
  const StorageId keys = b.Do("fc0", {x}, t * n);
  std::vector<StorageId> made;
  StorageId state = x;
  for (int i = 0; i < t; ++i) {
    const StorageId query = b.Do(absl::StrCat("fc_query", i), {state}, n);
    made.push_back(b.Do(absl::StrCat("tanh", i), {b.Do(absl::StrCat("add", i), {keys, query}, t * n)}, t * n));
    state = b.Do(absl::StrCat("fc_state", i), {made.back()}, 8);
  }
  StorageId gradient = b.Do("fc_loss_grad", {state}, 8, Phase::kBackward);
  for (int i = t; i-- > 0;) {
    const StorageId at_tanh =
        b.Do(absl::StrCat("fc_state_grad", i), {gradient, made[static_cast<size_t>(i)]}, t * n, Phase::kBackward);
    gradient = b.Do(absl::StrCat("tanh_grad", i), {made[static_cast<size_t>(i)], at_tanh}, 8, Phase::kBackward);
  }
  b.graph.storages[static_cast<size_t>(gradient)].kept = true;
  return b.graph;
}

TEST(EchoTest, Figure13) {
  for (int t : {2, 3, 4, 8, 16}) {
    const Graph graph = Broadcasts(t, 1000);
    ASSERT_TRUE(Check(graph).ok()) << Check(graph);
    const Values values = ValuesOf(graph);
    const EchoPlan plan = PlanByEcho(graph, values);
    EXPECT_EQ(Count(plan.again), t == 2 ? 0 : 2 * t) << t;
    const BuiltSchedule rebuilt = BuildSchedule(graph, values, plan.ways, {}, &plan.again);
    EXPECT_EQ(Verify(graph, rebuilt.schedule), "");
    if (t < 8) continue;
    // The kept bytes fall from T²N to 2TN; in addition to one result or two while they are used.
    const absl::StatusOr<Outcome> outcome = Simulate(graph, rebuilt.schedule);
    ASSERT_TRUE(outcome.ok());
    EXPECT_LE(outcome->live_peak, (2 * t + 5 * t) * 1000);
    EXPECT_GE(Simulate(graph, Baseline(graph))->live_peak, t * t * 1000);
  }
}

// A heavy operator's gradient needs its operand: the operand is recomputed, the operator is not.
TEST(EchoTest, HeavyOperatorsDoNotRunAgain) {
  for (int t : {3, 8}) {
    const Graph graph = Broadcasts(t, 1000);
    const Values values = ValuesOf(graph);
    std::vector<int> runs(graph.operators.size());
    const EchoPlan plan = PlanByEcho(graph, values);
    for (const Action& action : BuildSchedule(graph, values, plan.ways, {}, &plan.again).schedule.actions) {
      if (action.kind == ActionKind::kRun) ++runs[static_cast<size_t>(action.target)];
    }
    for (size_t i = 0; i < runs.size(); ++i)
      EXPECT_TRUE(runs[i] == 1 || !graph.operators[i].heavy) << graph.operators[i].name;
  }
}

// Bytes between the forward pass and the backward pass.
Bytes HeldBetween(const Graph& graph, const Outcome& outcome) {
  const auto forward = std::count_if(graph.operators.begin(), graph.operators.end(),
                                     [](const Operator& op) { return op.phase == Phase::kForward; });
  Bytes held = 0;
  for (const StorageResidency& stay : outcome.residencies) {
    // Clock values count runs from 1; the forward pass's operators run once, before any runs again.
    if (stay.begin <= forward && stay.end > forward + 1) held += stay.bytes;
  }
  return held;
}

// T broadcasts of [T x N]: T²N is kept without, 2TN with it.
TEST(EchoTest, WhatIsKeptOfTheBroadcasts) {
  constexpr Bytes kLittle = 8;  // x, and results of fc_state
  for (int t : {3, 4, 8, 16}) {
    const Graph graph = Broadcasts(t, 1000);
    const EchoPlan plan = PlanByEcho(graph, ValuesOf(graph));
    const Outcome program = *Simulate(graph, Baseline(graph));
    EXPECT_EQ(HeldBetween(graph, program) / 1000, t * t);
    // Values that the last step recomputes are resident from where they are dropped on: they are not counted twice.
    EXPECT_EQ(HeldBetween(graph, plan.outcome) / 1000, 2 * t);
    EXPECT_LE(HeldBetween(graph, plan.outcome) % 1000, (t + 2) * kLittle);
  }
}

// relu1 → fc → relu2 → fc2, whose gradients read the operands of the fully connected layers. For fc2's gradient relu2's
// result is recomputed from fc's, which is kept. For fc's gradient relu1's is. `fc` itself is a dead node, at any cost.
TEST(EchoTest, AFullyConnectedLayerAddsNoTime) {
  Builder b;
  const StorageId x = b.Make("x", 100, true);
  const StorageId first = b.Do("fc0", {x}, 100);
  const StorageId one = b.Do("scale1", {first}, 4000), two = b.Do("scale2", {one}, 4000);
  const StorageId through = b.Do("fc1", {two}, 100);
  const StorageId three = b.Do("scale3", {through}, 4000), four = b.Do("scale4", {three}, 4000);
  const StorageId out = b.Do("fc2", {four}, 8);
  StorageId gradient = b.Do("loss", {out}, 8, Phase::kBackward);
  gradient = b.Do("fc2_grad", {gradient, four}, 100, Phase::kBackward);
  gradient = b.Do("fc1_grad", {gradient, two, one}, 100, Phase::kBackward);
  b.graph.storages[static_cast<size_t>(gradient)].kept = true;
  ASSERT_TRUE(Check(b.graph).ok()) << Check(b.graph);
  const EchoPlan plan = PlanByEcho(b.graph, ValuesOf(b.graph));
  EXPECT_EQ(Count(plan.again), 4);
  EXPECT_EQ(plan.outcome.runs_again, 4);
  EXPECT_EQ(plan.outcome.compute, TotalCost(b.graph) + 4);  // four scales of 1 ns; 100 more for each fc that ran again
}

TEST(EchoTest, SubgraphsAreDisjointAndShareNoEdge) {
  std::mt19937_64 random(5);
  int several = 0;
  for (int i = 0; i < 500; ++i) {
    const Graph graph = RandomGraph(random, 10 + i % 60);
    if (!Check(graph).ok()) continue;
    const Values values = ValuesOf(graph);
    const EchoPlan plan = PlanByEcho(graph, values);
    several += plan.subgraphs > 1 ? 1 : 0;
    for (size_t op = 0; op < graph.operators.size(); ++op) {
      EXPECT_TRUE(!plan.again[op] || plan.subgraph_of[op] >= 0);
      EXPECT_TRUE(!graph.operators[op].heavy || plan.subgraph_of[op] == -1);
    }
    for (const Value& value : values.values) {
      if (value.maker < 0 && graph.storages[static_cast<size_t>(value.storage)].kept) continue;
      int32_t seen = value.maker < 0 ? -1 : plan.subgraph_of[static_cast<size_t>(value.maker)];
      for (OperatorId use : value.uses) {
        const int32_t user = plan.subgraph_of[static_cast<size_t>(use)];
        EXPECT_TRUE(user < 0 || seen < 0 || user == seen) << i;
        seen = std::max(seen, user);
      }
    }
  }
  EXPECT_GT(several, 50);
}

// `wide` is recomputed from little, and its gradient reads it. So it counts nothing in the decision whether to keep the
// sum with it instead: that frees `other` alone, which is as large.
TEST(EchoTest, OperandsThatAreMadeAgainCountNothing) {
  Builder b;
  const StorageId x = b.Make("x", 8, true);
  const StorageId little = b.Do("fc1", {x}, 100), other = b.Do("fc2", {x}, 1000);
  const StorageId wide = b.Do("wide", {little}, 1000);
  const StorageId sum = b.Do("sum", {wide, other}, 1000);
  const StorageId out = b.Do("fc3", {sum}, 5000);
  StorageId gradient = b.Do("loss", {out}, 5000, Phase::kBackward);  // the peak
  gradient = b.Do("fc3_grad", {gradient, sum}, 1000, Phase::kBackward);
  gradient = b.Do("wide_grad", {gradient, wide}, 8, Phase::kBackward);
  b.graph.storages[static_cast<size_t>(gradient)].kept = true;
  ASSERT_TRUE(Check(b.graph).ok()) << Check(b.graph);
  const EchoPlan plan = PlanByEcho(b.graph, ValuesOf(b.graph));
  std::vector<std::string> again;
  for (size_t op = 0; op < plan.again.size(); ++op) {
    if (plan.again[op]) again.push_back(b.graph.operators[op].name);
  }
  EXPECT_EQ(again, std::vector<std::string>{"wide"});
}

// Two towers of which only one may be computed again.
TEST(EchoTest, OnlyWhatIsAllowedRunsAgain) {
  const Graph graph = Broadcasts(8, 1000);
  const Values values = ValuesOf(graph);
  std::vector<bool> allowed(graph.operators.size(), true);
  for (size_t op = 0; op < allowed.size(); ++op) allowed[op] = graph.operators[op].name.starts_with("add");
  const EchoPlan plan = PlanByEcho(graph, values, {}, {.allowed = &allowed});
  for (size_t op = 0; op < allowed.size(); ++op) EXPECT_TRUE(allowed[op] || !plan.again[op]);
  EXPECT_EQ(plan.outcome.runs_again, 0);  // dropping the sums alone frees nothing
}

TEST(EchoTest, NeverMoreMemoryThanTheProgram) {
  std::mt19937_64 random(11);
  int less = 0, lower = 0;
  for (int i = 0; i < 3000; ++i) {
    const Graph graph = RandomGraph(random, 2 + i % 40);
    if (!Check(graph).ok()) continue;
    const Values values = ValuesOf(graph);
    const EchoPlan echo = PlanByEcho(graph, values);
    const BuiltSchedule rebuilt = BuildSchedule(graph, values, echo.ways, {}, &echo.again);
    ASSERT_EQ(Verify(graph, rebuilt.schedule), "") << i;
    const Outcome program = *Simulate(
        graph, BuildSchedule(graph, values, std::vector<GapAction>(values.gaps.size(), GapAction::kKeep)).schedule);
    const Outcome plan = *Simulate(graph, rebuilt.schedule);
    EXPECT_EQ(plan.live_peak, echo.outcome.live_peak);
    EXPECT_LE(plan.live_peak, program.live_peak);
    less += plan.live_peak < program.live_peak ? 1 : 0;
    const Bytes arena = Pack(ToInstance(plan.residencies)).placement.height,
                of_program = Pack(ToInstance(program.residencies)).placement.height;
    EXPECT_LE(arena, of_program) << i;
    lower += arena < of_program ? 1 : 0;
  }
  EXPECT_GT(less, 20);
  EXPECT_GT(lower, 10);
}

}  // namespace
}  // namespace hotpack::remat
