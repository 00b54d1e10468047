#include "remat/search/polish.h"

#include <gtest/gtest.h>

#include "remat/core/simulator.h"
#include "remat/core/verifier.h"
#include "tests/remat/small_graphs.h"
#include "tests/runs.h"

namespace hotpack::remat {
namespace {

constexpr Machine kSlow = {.bytes_per_ns_to_host = 5, .bytes_per_ns_to_device = 5};  // a storage in 20 ns

Outcome OutcomeOf(const Graph& graph, const Schedule& schedule, const Machine& machine = {}) {
  absl::StatusOr<Outcome> outcome = Simulate(graph, schedule, machine);
  EXPECT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(Verify(graph, schedule), "");
  return outcome.ok() ? *std::move(outcome) : Outcome();
}

// x1 leaves after f2, and comes back only when b2 waits for it.
Schedule LateCopy() {
  return {{Op(0), Op(1), Offload(1), Drop(1), Op(2), Op(3), Drop(3), Prefetch(1), Op(4), Drop(2), Drop(4), Op(5),
           Drop(1), Drop(5), Op(6), Drop(0), Drop(6)},
          {}};
}

TEST(PolishTest, CopiesReturnEarlier) {
  const Graph graph = Chain(3);
  const Schedule late = LateCopy();
  const Outcome before = OutcomeOf(graph, late, kSlow);
  Schedule schedule = late;
  ASSERT_TRUE(Polish(graph, {.budget = before.live_peak, .machine = kSlow, .steps = 2000}, &schedule));
  const Outcome after = OutcomeOf(graph, schedule, kSlow);
  EXPECT_LT(after.time, before.time);
  EXPECT_LE(after.live_peak, before.live_peak);
}

TEST(PolishTest, WhatFitsStays) {
  const Graph graph = Chain(3);
  Schedule schedule = LateCopy();
  ASSERT_TRUE(Polish(graph, {.machine = kSlow, .steps = 5000}, &schedule));
  const Outcome after = OutcomeOf(graph, schedule, kSlow);
  EXPECT_EQ(after.time, TotalCost(graph));
  EXPECT_EQ(after.copies, 0) << "copies to the host that nothing reads are left out";
}

TEST(PolishTest, NoRunIsRepeatedWithoutNeed) {
  const Graph graph = Chain(2);
  Schedule schedule = {{Op(0), Op(1), Drop(1), Op(2), Drop(2), Op(0), Op(3), Drop(3), Drop(1), Op(4), Drop(0), Drop(4)},
                       {}};
  ASSERT_EQ(OutcomeOf(graph, schedule).runs_again, 1);
  ASSERT_TRUE(Polish(graph, {.steps = 2000}, &schedule));
  EXPECT_EQ(OutcomeOf(graph, schedule).runs_again, 0);
}

TEST(PolishTest, WhatDoesNotPassIsNotTaken) {
  const Graph graph = Chain(3);
  const Schedule late = LateCopy();
  Schedule schedule = late;
  int asked = 0;
  const auto passes = [&asked](const Schedule&) { return ++asked < 0; };
  EXPECT_FALSE(Polish(graph, {.machine = kSlow, .steps = 2000, .passes = passes}, &schedule));
  EXPECT_GT(asked, 0);
  EXPECT_EQ(schedule.actions.size(), late.actions.size());
}

TEST(PolishTest, NoCopiesUnlessAllowed) {
  const Graph graph = Chain(3);
  Schedule schedule = {{Op(0), Op(1), Drop(1), Op(2), Op(3), Drop(3), Op(4), Drop(2), Drop(4), Op(0), Op(5), Drop(1),
                        Drop(5), Op(6), Drop(0), Drop(6)},
                       {}};
  const Bytes budget = OutcomeOf(graph, schedule).live_peak;
  const Machine fast = {.bytes_per_ns_to_host = 100, .bytes_per_ns_to_device = 100};
  Schedule without = schedule;
  Polish(graph, {.budget = budget, .machine = fast, .steps = 5000}, &without);
  EXPECT_EQ(OutcomeOf(graph, without, fast).copies, 0);
  ASSERT_TRUE(Polish(graph, {.budget = budget, .machine = fast, .swap = true, .steps = 5000}, &schedule));
  EXPECT_EQ(OutcomeOf(graph, schedule, fast).runs_again, 0);
}

// Operators that change and overwrite storages, work in place, or may run once only.
TEST(PolishTest, DrawnGraphsStayRight) {
  std::mt19937_64 random(7);
  int polished = 0;
  for (int i = 0; i < testing::Runs(600); ++i) {
    const Graph graph = RandomGraph(random, 2 + i % 12);
    if (!Check(graph).ok()) continue;
    Schedule schedule = Baseline(graph, Release::kAsTheProgram);
    // Every storage leaves as soon as it can.
    std::vector<Action> actions;
    for (const Action& action : schedule.actions) {
      if (action.kind == ActionKind::kRun) {
        for (StorageId id : graph.operators[At(action.target)].reads) actions.push_back(Offload(id));
      }
      actions.push_back(action);
    }
    schedule.actions = actions;
    const absl::StatusOr<Outcome> before = Simulate(graph, schedule, kSlow);
    if (!before.ok() || !Verify(graph, schedule).empty()) continue;
    const PolishOptions options = {.budget = before->live_peak, .machine = kSlow, .swap = true, .steps = 300};
    if (!Polish(graph, options, &schedule)) continue;
    const Outcome after = OutcomeOf(graph, schedule, kSlow);
    EXPECT_LE(after.time, before->time) << i;
    EXPECT_LE(after.live_peak, before->live_peak) << i;
    ++polished;
  }
  EXPECT_GT(polished, testing::Runs(200));
}

}  // namespace
}  // namespace hotpack::remat
