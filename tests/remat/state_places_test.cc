#include "remat/state_places.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "remat/core/update_slices.h"
#include "remat/core/verifier.h"
#include "tests/remat/small_graphs.h"

namespace hotpack::remat {
namespace {

using testing::HasSubstr;

constexpr Bytes kMib = 1 << 20;
constexpr int kParameters = 8;

// Eight parameters of a MiB each. When the step ends there are 8 MiB of each: parameters, gradients and state.
class StatePlacesTest : public testing::Test {
 protected:
  StatePlacesTest() {
    Graph graph = UpdateStep(kParameters, kMib);
    for (Storage& storage : graph.storages) storage.movable = storage.kept;
    for (Operator& op : graph.operators) op.cost *= 100;
    sliced_ = SliceUpdates(graph, 0);
    options_.algorithm = RematAlgorithm::kSearch;
    options_.swap = true;
    options_.time_limit_ns = 2'000'000'000;
  }
  absl::StatusOr<PlanWithState> Plan(StatePlaces places, Bytes budget, const RunTasks& run_all = RunInTurn) {
    options_.budget = budget;
    return MakePlanWithState(sliced_.graph, sliced_.slices, places, options_, run_all);
  }

  SlicedGraph sliced_;
  PlanOptions options_;
};

TEST_F(StatePlacesTest, WhatDoesNotFitIsOnTheHost) {
  const absl::StatusOr<PlanWithState> part = Plan(StatePlaces::kAuto, 21 * kMib + kMib / 2);
  ASSERT_TRUE(part.ok()) << part.status();
  EXPECT_GE(part->host_slices, 3u);
  EXPECT_LT(part->host_slices, 8u);
  EXPECT_LE(part->plan.arena, 21 * kMib + kMib / 2);
  EXPECT_EQ(Verify(part->graph, part->plan.schedule), "");
  size_t away = 0;
  for (const Storage& storage : part->graph.storages) away += storage.away ? 1 : 0;
  EXPECT_EQ(away, part->host_slices);
  // A copy takes longer than all operators, so with more of them a step takes longer.
  const absl::StatusOr<PlanWithState> all = Plan(StatePlaces::kHost, 21 * kMib + kMib / 2);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->host_slices, 8u);
  EXPECT_LT(part->plan.outcome.time, all->plan.outcome.time);
  EXPECT_LE(part->plan.lower_bound_time, part->plan.outcome.time);
}

TEST_F(StatePlacesTest, NoneIsOnTheHostWhereAllFits) {
  const absl::StatusOr<PlanWithState> plan = Plan(StatePlaces::kAuto, 40 * kMib);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->host_slices, 0u);
  EXPECT_EQ(plan->plan.outcome.time, plan->plan.baseline_time);
}

TEST_F(StatePlacesTest, NoneIsOnTheHostIfThatIsAsked) {
  const absl::StatusOr<PlanWithState> plan = Plan(StatePlaces::kDevice, 21 * kMib + kMib / 2);
  EXPECT_THAT(std::string(plan.status().message()), HasSubstr("every plan needs at least"));
  options_.swap = false;
  const absl::StatusOr<PlanWithState> without_copies = Plan(StatePlaces::kHost, 40 * kMib);
  ASSERT_TRUE(without_copies.ok()) << without_copies.status();
  EXPECT_EQ(without_copies->host_slices, 0u);
}

TEST_F(StatePlacesTest, WhatFitsInNoWayIsOneLine) {
  const absl::StatusOr<PlanWithState> plan = Plan(StatePlaces::kAuto, 12 * kMib);
  EXPECT_THAT(std::string(plan.status().message()), HasSubstr("every plan needs at least"));
}

// The first operator of backward needs so much that state on the device has to leave before it, and to return. With
// seven slices on the host none has to.
TEST_F(StatePlacesTest, PartsWithTheLeastBoundsAreTriedFirst) {
  sliced_.graph.operators.front().workspace = 12 * kMib;
  int rounds = 0;
  const auto first_alone = [&](const std::vector<std::function<void()>>& tasks) {
    if (rounds++ == 0) RunInTurn(tasks);
  };
  const absl::StatusOr<PlanWithState> plan = Plan(StatePlaces::kAuto, 21 * kMib + kMib / 2, first_alone);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_GE(plan->host_slices, 6u);
  EXPECT_GT(rounds, 1);
}

// Parts without a plan are no reason to give up while larger ones have one.
TEST_F(StatePlacesTest, MoreIsOnTheHostWhereLessHasNoPlan) {
  // The least part leaves room for what any plan needs, and none for the temporary of the last slices.
  const absl::StatusOr<PlanWithState> plan = Plan(StatePlaces::kAuto, 17 * kMib + kMib / 2);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(Verify(plan->graph, plan->plan.schedule), "");
}

// Nor is the time that they took: all state on the host is the last resort, not the next one.
TEST_F(StatePlacesTest, LargerPartsAreTriedWhereSmallerOnesTookAllTheTime) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(options_.time_limit_ns);
  int rounds = 0;
  const auto first_in_vain = [&](const std::vector<std::function<void()>>& tasks) {
    if (rounds++ > 0) return RunInTurn(tasks);
    while (std::chrono::steady_clock::now() < end) continue;  // three and four slices: no plan, and no time is left
  };
  const absl::StatusOr<PlanWithState> plan = Plan(StatePlaces::kAuto, 21 * kMib + kMib / 2, first_in_vain);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_GT(plan->host_slices, 4u);
  EXPECT_LT(plan->host_slices, 8u);
}

}  // namespace
}  // namespace hotpack::remat
