#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "remat/core/load.h"
#include "remat/core/simulator.h"
#include "remat/core/update_slices.h"
#include "remat/exact/bounds.h"
#include "remat/networks/generator.h"
#include "remat/planner_list.h"
#include "remat/remat_plan.h"
#include "tests/remat/small_graphs.h"
#include "tests/support/sanitized.h"

namespace hotpack::remat {
namespace {

// Storages of some bytes take 512 of the arena each, so live bytes say little about it.
TEST(PlansTest, SmallStoragesTakeWholeGrains) {
  const absl::StatusOr<Graph> graph = Generate("lstm:2x8,batch=2,steps=4,classes=8");
  ASSERT_TRUE(graph.ok()) << graph.status();
  PlanOptions options;
  options.algorithm = RematAlgorithm::kSearch;
  options.time_limit_ns = 200'000'000;
  options.budget = 55978;
  const absl::StatusOr<RematPlan> answer = MakeRematPlan(*graph, options);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_LE(answer->arena, options.budget);
  EXPECT_GT(answer->recomputed, 0);
}

TEST(PlansTest, EndsWhereNothingIsFaster) {
  const absl::StatusOr<Graph> graph = Generate("vgg:16,batch=64");
  ASSERT_TRUE(graph.ok()) << graph.status();
  PlanOptions options;
  options.algorithm = RematAlgorithm::kSearch;
  options.swap = true;
  options.time_limit_ns = 60'000'000'000;
  options.budget = 5'000'000'000;
  const absl::StatusOr<RematPlan> answer = MakeRematPlan(*graph, options);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->outcome.time, answer->baseline_time);
  EXPECT_LE(answer->arena, options.budget);
  EXPECT_LE(answer->swapped, 4);
  EXPECT_LT(answer->seconds, 50);
}

// However little time it has: it also begins with the plans of two planners that need hardly any.
TEST(PlansTest, TheSearchHasAPlanWhereSimplerPlannersHaveOne) {
  const absl::StatusOr<Graph> graph = Generate("resnet:50,batch=32");
  ASSERT_TRUE(graph.ok()) << graph.status();
  PlanOptions options;
  options.time_limit_ns = 1'000'000;
  options.budget = Simulate(*graph, Baseline(*graph))->live_peak * 35 / 100;
  options.algorithm = RematAlgorithm::kChen;
  const absl::StatusOr<RematPlan> simple = MakeRematPlan(*graph, options);
  ASSERT_TRUE(simple.ok()) << simple.status();
  options.algorithm = RematAlgorithm::kSearch;
  const absl::StatusOr<RematPlan> ours = MakeRematPlan(*graph, options);
  ASSERT_TRUE(ours.ok()) << ours.status();
  EXPECT_EQ(ours->algorithm, "search");
  EXPECT_LE(ours->outcome.time, simple->outcome.time);
}

// Other planners would take several times the time limit, and leave none for the search.
TEST(PlansTest, OfALargeStepTheSearchHasTheTime) {
#ifdef HOTPACK_SANITIZED
  GTEST_SKIP() << "with a sanitizer the search finds no plan in this time";
#endif
  const absl::StatusOr<Graph> graph = Generate("lstm:4x1024,batch=64,steps=100");
  ASSERT_TRUE(graph.ok()) << graph.status();
  PlanOptions options;
  options.budget = Simulate(*graph, Baseline(*graph))->live_peak * 64 / 100;
  options.time_limit_ns = 4'000'000'000;
  const absl::StatusOr<RematPlan> plan = MakeRematPlan(*graph, options);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->algorithm, "search");
}

// One that copies whatever it can has a plan where a search of so little time has none.
TEST(PlansTest, TheSearchHasAPlanWherePlannersThatCopyHaveOne) {
  const absl::StatusOr<Graph> graph = Generate("resnet:50,batch=32");
  ASSERT_TRUE(graph.ok()) << graph.status();
  PlanOptions options;
  options.time_limit_ns = 1'000'000;
  options.budget = 870'000'000;
  options.swap = true;
  options.algorithm = RematAlgorithm::kSuperNeurons;
  const absl::StatusOr<RematPlan> simple = MakeRematPlan(*graph, options);
  ASSERT_TRUE(simple.ok()) << simple.status();
  options.algorithm = RematAlgorithm::kSearch;
  const absl::StatusOr<RematPlan> ours = MakeRematPlan(*graph, options);
  ASSERT_TRUE(ours.ok()) << ours.status();
  EXPECT_LE(ours->arena, options.budget);
  EXPECT_EQ(ours->algorithm, "search");
}

// All of its plans are visited: the bound is the plan's own time, above what cuts prove. Nothing else is tried.
TEST(PlansTest, OfASmallStepNoPlanIsFaster) {
  const Graph graph = SliceUpdates(UpdateStep(2, 1 << 20), 0).graph;
  const Bytes least = LeastMemory(graph, true), most = Simulate(graph, Baseline(graph))->live_peak;
  PlanOptions options;
  options.algorithm = RematAlgorithm::kSearch;
  options.swap = true;
  options.machine = {.bytes_per_ns_to_host = 20'000, .bytes_per_ns_to_device = 20'000};
  options.time_limit_ns = 60'000'000'000;
  int above = 0;
  for (int part = 0; part < 4; ++part) {
    options.budget = least + (most - least) * part / 4 + 4096;
    SCOPED_TRACE(options.budget);
    const absl::StatusOr<RematPlan> plan = MakeRematPlan(graph, options);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_LE(plan->arena, options.budget);
    EXPECT_EQ(plan->outcome.time, plan->lower_bound_time);
    EXPECT_LT(plan->seconds, 10);
    const absl::StatusOr<TimeBound> by_cuts = LeastTime(
        graph, ValuesOf(graph), options.budget, {.keeps_order = true, .swap = true, .machine = options.machine});
    ASSERT_TRUE(by_cuts.ok()) << by_cuts.status();
    above += plan->lower_bound_time > by_cuts->time ? 1 : 0;
  }
  EXPECT_GT(above, 1);
}

// Of each planner, with and without copies. MakeRematPlan() gives every plan to the verifier.
TEST(PlansTest, WhatTheProgramHoldsStays) {
  std::mt19937_64 random(11);
  int planned = 0, recomputed = 0;
  for (int i = 0; i < 8; ++i) {
    Graph graph = i % 2 == 0 ? Chain(6, 1 << 20) : RandomGraph(random, 14);
    if (!Check(graph).ok()) continue;
    const std::vector<std::vector<OperatorId>> uses = UsesOf(graph);
    graph.released_after.assign(graph.storages.size(), kNever);
    for (size_t id = 0; id < graph.storages.size(); ++id) {
      if (graph.storages[id].kept || uses[id].empty()) continue;
      graph.storages[id].held = random() % 3 == 0;
      graph.released_after[id] = uses[id].back();
    }
    const absl::StatusOr<Outcome> outcome = Simulate(graph, Baseline(graph));
    ASSERT_TRUE(outcome.ok()) << outcome.status();
    for (const PlannerTraits& planner : kPlanners) {
      if (planner.algorithm == RematAlgorithm::kDqn) continue;  // learns for as long as it may
      PlanOptions options;
      options.algorithm = planner.algorithm;
      options.swap = i % 4 > 1;
      options.budget = std::max<Bytes>(1, outcome->live_peak * 4 / 5);
      options.time_limit_ns = 2'000'000;
      const absl::StatusOr<RematPlan> plan = MakeRematPlan(graph, options);
      EXPECT_FALSE(absl::IsInternal(plan.status())) << planner.name << ": " << plan.status();
      if (!plan.ok()) continue;
      ++planned;
      recomputed += plan->recomputed > 0;
    }
  }
  EXPECT_GT(planned, 5);
  EXPECT_GT(recomputed, 2);
}

TEST(PlansTest, NoneIsSlowerThanOneOfASmallerBudget) {
  const Graph graph = Chain(50, 512);
  PlanOptions options;
  options.algorithm = RematAlgorithm::kSearch;
  options.time_limit_ns = 20'000'000;
  const std::vector<Bytes> budgets = {5120, 25600, 3584, 15360, 1024, 20480};
  const std::vector<absl::StatusOr<RematPlan>> answers = MakePlans(graph, options, budgets);
  ASSERT_EQ(answers.size(), budgets.size());
  EXPECT_EQ(answers[4].status().code(), absl::StatusCode::kResourceExhausted);  // below what every plan needs
  for (size_t a = 0; a < budgets.size(); ++a) {
    if (a == 4) continue;
    ASSERT_TRUE(answers[a].ok()) << answers[a].status();
    EXPECT_LE(answers[a]->arena, budgets[a]);
    for (size_t b = 0; b < budgets.size(); ++b) {
      if (b != 4 && budgets[b] > budgets[a]) {
        EXPECT_LE(answers[b]->outcome.time, answers[a]->outcome.time);
      }
    }
  }
}

TEST(PlansTest, TheBoundIsTheBudgetsOwn) {
  const Graph graph = Chain(50, 512);
  PlanOptions options;
  options.algorithm = RematAlgorithm::kChen;  // which plans at once
  options.time_limit_ns = 4'000'000'000;      // a quarter of it at most is the bound's
  std::vector<Bytes> budgets;
  for (Bytes budget = 3584; budget <= 25600; budget += 2048) budgets.push_back(budget);
  const std::vector<absl::StatusOr<RematPlan>> answers = MakePlans(graph, options, budgets);
  int planned = 0;
  for (size_t i = 0; i < budgets.size(); ++i) {
    if (!answers[i].ok()) continue;
    ++planned;
    if (answers[i]->outcome.time <= answers[i]->baseline_time) continue;
    const absl::StatusOr<TimeBound> bound =
        LeastTime(graph, ValuesOf(graph), budgets[i], {.machine = options.machine, .time_limit_ns = 1'000'000'000});
    ASSERT_TRUE(bound.ok()) << bound.status();
    EXPECT_EQ(answers[i]->lower_bound_time, std::max(answers[i]->baseline_time, bound->time)) << budgets[i];
  }
  EXPECT_GE(planned, 5);
}

}  // namespace
}  // namespace hotpack::remat
