#include "planner/echo.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/verifier.h"
#include "tests/planner/small_graphs.h"

namespace hotpack::planner {
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
    const StorageId at_tanh = b.Do(absl::StrCat("fc_state_grad", i), {gradient, made[static_cast<size_t>(i)]}, t * n, Phase::kBackward);
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
    const Rebuilt rebuilt = Rebuild(graph, values, plan.ways, {}, &plan.again);
    EXPECT_EQ(Verify(graph, rebuilt.schedule), "");
    if (t < 8) continue;
    // What is kept goes from T²N to 2TN; beside it one result or two while they are used.
    const absl::StatusOr<Outcome> outcome = Simulate(graph, rebuilt.schedule);
    ASSERT_TRUE(outcome.ok());
    EXPECT_LE(outcome->live_peak, (2 * t + 5 * t) * 1000);
    EXPECT_GE(Simulate(graph, Baseline(graph))->live_peak, t * t * 1000);
  }
}

// A heavy operator's gradient needs what it read: that is computed again, it is not.
TEST(EchoTest, HeavyOperatorsDoNotRunAgain) {
  for (int t : {3, 8}) {
    const Graph graph = Broadcasts(t, 1000);
    const Values values = ValuesOf(graph);
    std::vector<int> runs(graph.operators.size());
    const EchoPlan plan = PlanByEcho(graph, values);
    for (const Action& action : Rebuild(graph, values, plan.ways, {}, &plan.again).schedule.actions) {
      if (action.kind == ActionKind::kRun) ++runs[static_cast<size_t>(action.target)];
    }
    for (size_t i = 0; i < runs.size(); ++i) EXPECT_TRUE(runs[i] == 1 || !graph.operators[i].heavy) << graph.operators[i].name;
  }
}

TEST(EchoTest, NeverMoreMemoryThanTheProgram) {
  std::mt19937_64 random(11);
  int less = 0;
  for (int i = 0; i < 3000; ++i) {
    const Graph graph = RandomGraph(random, 2 + i % 40);
    if (!Check(graph).ok()) continue;
    const Values values = ValuesOf(graph);
    const EchoPlan echo = PlanByEcho(graph, values);
    const Rebuilt rebuilt = Rebuild(graph, values, echo.ways, {}, &echo.again);
    ASSERT_EQ(Verify(graph, rebuilt.schedule), "") << i;
    const Bytes program = Simulate(graph, Rebuild(graph, values, std::vector<Way>(values.gaps.size(), Way::kHold)).schedule)->live_peak;
    const Bytes plan = Simulate(graph, rebuilt.schedule)->live_peak;
    EXPECT_LE(plan, program);
    less += plan < program ? 1 : 0;
  }
  EXPECT_GT(less, 20);
}

}  // namespace
}  // namespace hotpack::planner
