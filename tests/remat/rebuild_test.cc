#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "remat/core/schedule_builder.h"
#include "remat/core/simulator.h"
#include "remat/core/verifier.h"
#include "tests/remat/small_graphs.h"

namespace hotpack::remat {
namespace {

std::vector<GapAction> All(const Values& values, GapAction way) {
  return std::vector<GapAction>(values.gaps.size(), way);
}

Outcome Simulated(const Graph& graph, const Schedule& schedule, const Machine& machine = {}) {
  const absl::StatusOr<Outcome> outcome = Simulate(graph, schedule, machine);
  EXPECT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(Verify(graph, schedule), "");
  return outcome.ok() ? *outcome : Outcome();
}

TEST(ValuesTest, OfAChain) {
  Graph graph = Chain(2);
  graph.operators[1].updates = {1};  // f2 changes x1 in place
  graph.operators[1].reads = {};
  const Values values = ValuesOf(graph);
  ASSERT_EQ(values.values.size(), 7u);  // x0 x1 x2 x1' g2 g1 g0
  EXPECT_EQ(values.values[1].uses, (std::vector<OperatorId>{1}));
  EXPECT_EQ(values.values[1].overwritten, 1);
  EXPECT_EQ(values.values[3].uses, (std::vector<OperatorId>{3}));
  EXPECT_TRUE(values.values[6].left);
  EXPECT_EQ(values.GapsOf(6), 1);
  EXPECT_EQ(values.gaps[static_cast<size_t>(values.values[6].first_gap)].before, 5);
}

TEST(RebuildTest, HoldingAllIsTheBaseline) {
  const Graph graph = Chain(5);
  const Values values = ValuesOf(graph);
  const Outcome outcome = Simulated(graph, BuildSchedule(graph, values, All(values, GapAction::kKeep)).schedule);
  const Outcome baseline = Simulated(graph, Baseline(graph));
  EXPECT_EQ(outcome.time, baseline.time);
  EXPECT_EQ(outcome.live_peak, baseline.live_peak);
}

// If everything is dropped between its uses, each gradient begins from x0: n(n-1)/2 additional runs, and five storages.
TEST(RebuildTest, NothingHeld) {
  for (int layers : {2, 5, 30}) {
    const Graph graph = Chain(layers);
    const Values values = ValuesOf(graph);
    const BuiltSchedule once = BuildSchedule(graph, values, All(values, GapAction::kRecomputeOnce));
    EXPECT_TRUE(once.held.empty());
    const Outcome outcome = Simulated(graph, once.schedule);
    EXPECT_EQ(outcome.runs_again, layers * (layers - 1) / 2);
    EXPECT_LE(outcome.live_peak, 500);
    // Held when recomputed: one forward pass more.
    const Outcome again = Simulated(graph, BuildSchedule(graph, values, All(values, GapAction::kRecompute)).schedule);
    EXPECT_EQ(again.runs_again, layers - 1);
  }
}

TEST(RebuildTest, CopiedOutAndBack) {
  const Graph graph = Chain(20, 1000, 100);
  const Values values = ValuesOf(graph);
  std::vector<GapAction> ways = All(values, GapAction::kKeep);
  for (size_t g = 0; g < ways.size(); ++g) {
    const Gap& gap = values.gaps[g];
    if (gap.before - gap.after > 10 && gap.after >= 0) ways[g] = GapAction::kOffload;
  }
  const Machine fast = {.bytes_per_ns_to_host = 100, .bytes_per_ns_to_device = 100};
  const Outcome outcome = Simulated(graph, BuildSchedule(graph, values, ways, fast).schedule, fast);
  EXPECT_EQ(outcome.runs_again, 0);
  EXPECT_EQ(outcome.time, 4100) << "copies that take a tenth of an operator cost nothing";
  EXPECT_GT(outcome.copies, 20);
  EXPECT_LT(outcome.live_peak, Simulated(graph, Baseline(graph)).live_peak * 6 / 10);
  const Machine slow = {.bytes_per_ns_to_host = 2, .bytes_per_ns_to_device = 2};
  EXPECT_GT(Simulated(graph, BuildSchedule(graph, values, ways, slow).schedule, slow).time, 4100);
}

// For any decisions the schedule computes the same. Its memory is at most the program's if nothing is dropped.
TEST(RebuildTest, AnyWaysAnyGraph) {
  std::mt19937_64 random(5);
  int64_t again = 0, copies = 0, held = 0;
  for (int i = 0; i < 6000; ++i) {
    const Graph graph = RandomGraph(random, 2 + i % 40);
    if (!Check(graph).ok()) continue;
    const Values values = ValuesOf(graph);
    std::vector<GapAction> ways = All(values, GapAction::kKeep);
    const auto most = static_cast<int>(random() % 4);
    for (GapAction& way : ways) way = static_cast<GapAction>(std::min<int>(static_cast<int>(random() % 4), most));
    std::vector<bool> some(graph.operators.size());
    for (size_t op = 0; op < some.size(); ++op) some[op] = random() % 2 == 0;
    const BuiltSchedule rebuilt =
        i % 2 == 0 ? BuildSchedule(graph, values, ways) : BuildSchedule(graph, values, ways, {}, &some);
    if (i % 2 == 1) {
      std::vector<int> runs(graph.operators.size());
      for (const Action& action : rebuilt.schedule.actions) {
        if (action.kind != ActionKind::kRun) continue;
        const auto op = static_cast<size_t>(action.target);
        ASSERT_TRUE(++runs[op] == 1 || some[op]) << "runs again and may not";
      }
    }
    const absl::StatusOr<Outcome> outcome = Simulate(graph, rebuilt.schedule);
    ASSERT_TRUE(outcome.ok()) << outcome.status() << " " << i;
    ASSERT_EQ(Verify(graph, rebuilt.schedule), "") << i;
    again += outcome->runs_again;
    copies += outcome->copies;
    held += static_cast<int64_t>(rebuilt.held.size());
    if (most == 0) {
      EXPECT_EQ(outcome->compute, TotalCost(graph));
      EXPECT_LE(outcome->live_peak, Simulate(graph, Baseline(graph))->live_peak);
    }
  }
  EXPECT_GT(again, 10000);
  EXPECT_GT(copies, 10000);
  EXPECT_GT(held, 1000);
}

}  // namespace
}  // namespace hotpack::remat
