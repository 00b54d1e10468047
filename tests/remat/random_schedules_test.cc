// Simulator and verifier share no code: on schedules drawn at random they must agree, and the packer with both.
#include <gtest/gtest.h>

#include <string>

#include "packer/bounds.h"
#include "packer/pack.h"
#include "packer/validator.h"
#include "remat/core/simulator.h"
#include "remat/core/verifier.h"
#include "tests/remat/small_graphs.h"

namespace hotpack::remat {
namespace {

// Actions drawn one by one. Those that the simulator rejects are removed. Most draws prefer the baseline's actions, so
// that many schedules reach their end.
Schedule RandomSchedule(std::mt19937_64& random, const Graph& graph) {
  Schedule schedule = Baseline(graph);
  const auto draw = [&random](size_t below) { return std::uniform_int_distribution<size_t>(0, below - 1)(random); };
  for (size_t changes = draw(6); changes > 0; --changes) {
    Action action = {static_cast<ActionKind>(draw(5)), 0};
    action.target =
        static_cast<int32_t>(draw(action.kind == ActionKind::kRun ? graph.operators.size() : graph.storages.size()));
    if (action.kind == ActionKind::kRun && !graph.operators[static_cast<size_t>(action.target)].in_place.empty() &&
        draw(2) == 0) {
      action.in_place = {
          static_cast<int32_t>(draw(graph.operators[static_cast<size_t>(action.target)].in_place.size()))};
    }
    const auto at = static_cast<std::ptrdiff_t>(draw(schedule.actions.size() + 1));
    if (draw(4) == 0 && at < static_cast<std::ptrdiff_t>(schedule.actions.size())) {
      schedule.actions.erase(schedule.actions.begin() + at);
    } else {
      schedule.actions.insert(schedule.actions.begin() + at, action);
    }
  }
  return schedule;
}

TEST(RandomSchedulesTest, WhatIsVerifiedCanBeDone) {
  std::mt19937_64 random(20261122);
  int verified = 0, refused_by_both = 0, wrong_contents = 0;
  for (int i = 0; i < 20000; ++i) {
    Graph graph = RandomGraph(random, 1 + i % 12);
    if (!Check(graph).ok()) continue;
    const Schedule schedule = RandomSchedule(random, graph);
    const absl::StatusOr<Outcome> outcome = Simulate(graph, schedule);
    const std::string fault = Verify(graph, schedule);
    if (!outcome.ok()) {
      // Whatever cannot be done is found by either.
      EXPECT_NE(fault, "") << outcome.status() << " (" << i << ")";
      ++refused_by_both;
      continue;
    }
    if (!fault.empty()) {
      // It can be done and does not compute the same: contents, order, or a run that must not be.
      EXPECT_TRUE(fault.find("contents") != fault.npos || fault.find("order") != fault.npos ||
                  fault.find("again") != fault.npos)
          << fault;
      ++wrong_contents;
      continue;
    }
    ++verified;
    EXPECT_GE(outcome->time, outcome->compute);
    EXPECT_GE(outcome->compute, TotalCost(graph));
    const Instance instance = ToInstance(outcome->residencies, 1);
    if (instance.blocks.empty()) continue;
    EXPECT_EQ(MaxLoad(instance), outcome->live_peak) << i;
    const PackResult packed = Pack(instance, {.algorithm = Algorithm::kBestFit});
    ASSERT_EQ(packed.status, PackStatus::kOk) << i;
    EXPECT_EQ(Validate(instance, packed.placement), "");
  }
  EXPECT_GT(verified, 3000);
  EXPECT_GT(refused_by_both, 1000);
  EXPECT_GT(wrong_contents, 200);
}

}  // namespace
}  // namespace hotpack::remat
