#include "remat/search/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "remat/baselines/dtr.h"
#include "remat/baselines/echo.h"
#include "remat/chen/segments.h"
#include "remat/core/load.h"
#include "remat/core/verifier.h"
#include "remat/exact/bounds.h"
#include "tests/remat/small_graphs.h"
#include "tests/runs.h"

namespace hotpack::remat {
namespace {

struct Cost {
  Bytes peak;
  Nanoseconds time;
};

// Of all ways to bridge all gaps.
std::vector<Cost> AllPlans(const Graph& graph, const Values& values) {
  std::vector<Cost> plans;
  const auto all = static_cast<size_t>(std::pow(3, values.gaps.size()));
  for (size_t code = 0; code < all; ++code) {
    std::vector<GapAction> ways;
    for (size_t g = 0, rest = code; g < values.gaps.size(); ++g, rest /= 3)
      ways.push_back(static_cast<GapAction>(rest % 3));
    const absl::StatusOr<Outcome> outcome = Simulate(graph, BuildSchedule(graph, values, ways).schedule);
    if (outcome.ok()) plans.push_back({outcome->live_peak, outcome->time});
  }
  return plans;
}

// The time of the fastest of at most so many bytes.
Nanoseconds BestOf(const std::vector<Cost>& plans, Bytes budget) {
  Nanoseconds best = INT64_MAX;
  for (const Cost& plan : plans) {
    if (plan.peak <= budget) best = std::min(best, plan.time);
  }
  return best;
}

TEST(SearchTest, AsFastAsAllPlansOfSmallChains) {
  for (int layers : {2, 3}) {
    Graph graph = Chain(layers);
    graph.operators[0].cost = 30;
    const Values values = ValuesOf(graph);
    const std::vector<Cost> all = AllPlans(graph, values);
    Search search(graph, values);
    for (Bytes budget = 300; budget <= 600; budget += 100) {
      const Found found = search.Run({.budget = budget, .steps = 500});
      const Nanoseconds best = BestOf(all, budget);
      EXPECT_EQ(found.fits, best < INT64_MAX);
      if (found.fits) {
        EXPECT_EQ(found.time, best) << layers << " layers, " << budget << " bytes";
      }
    }
  }
}

TEST(SearchTest, AsFastAsAllPlansOfSmallGraphs) {
  std::mt19937_64 random(21);
  int compared = 0, slower = 0;
  for (int i = 0; i < testing::Runs(400); ++i) {
    const Graph graph = RandomGraph(random, 3 + i % 4);
    if (!Check(graph).ok()) continue;
    const Values values = ValuesOf(graph);
    if (values.gaps.size() > 8) continue;
    const std::vector<Cost> all = AllPlans(graph, values);
    Search search(graph, values);
    const Bytes most = Simulate(graph, Baseline(graph))->live_peak, least = LeastMemory(graph, false);
    for (int part = 0; part < 3; ++part) {
      const Bytes budget = least + (most - least) * part / 3;
      const Nanoseconds best = BestOf(all, budget);
      const Found found = search.Run({.budget = budget, .steps = 300});
      if (best == INT64_MAX) continue;
      ++compared;
      slower += !found.fits || found.time > best ? 1 : 0;
    }
  }
  EXPECT_GT(compared, testing::Runs(200));
  EXPECT_EQ(slower, 0);
}

TEST(SearchTest, ItsPlanIsWhatItSays) {
  const Graph graph = Chain(40);
  const Values values = ValuesOf(graph);
  Search search(graph, values);
  for (Bytes budget : {500, 1000, 2000, 3000}) {
    const Found found = search.Run({.budget = budget, .steps = 300});
    ASSERT_TRUE(found.fits) << budget;
    EXPECT_EQ(Verify(graph, found.schedule), "");
    const absl::StatusOr<Outcome> outcome = Simulate(graph, found.schedule);
    ASSERT_TRUE(outcome.ok());
    EXPECT_EQ(outcome->time, found.time);
    EXPECT_EQ(outcome->live_peak, found.peak);
    EXPECT_LE(found.peak, budget);
    // Gone on from itself it is not slower.
    const Found next =
        search.Run({.budget = budget, .seed = 2, .steps = 50, .from = {&found.choice}, .restart = false});
    EXPECT_LE(next.time, found.time);
  }
}

int64_t Copies(const Schedule& schedule) {
  return std::count_if(schedule.actions.begin(), schedule.actions.end(),
                       [](const Action& action) { return action.kind == ActionKind::kOffload; });
}

TEST(SearchTest, CopiesNoMoreThanItHasTo) {
  const Graph graph = Chain(40, 100, 1000);  // a copy takes 9 ns
  const Values values = ValuesOf(graph);
  const Bytes whole = Simulate(graph, Baseline(graph))->live_peak;
  Search search(graph, values);
  for (const int gone : {1, 4, 10}) {
    const Found found = search.Run({.budget = whole - 100 * gone, .swap = true, .steps = 100});
    ASSERT_TRUE(found.fits);
    EXPECT_EQ(found.time, TotalCost(graph));
    EXPECT_EQ(found.steps, 0);  // nothing is faster
    EXPECT_EQ(Copies(found.schedule), gone);
    Decisions all = NothingGoes(values);  // all values that can be copied
    std::fill(all.ways.begin(), all.ways.end(), GapAction::kOffload);
    const Found less =
        search.Run({.budget = whole - 100 * gone, .swap = true, .steps = 100, .from = {&all}, .restart = false});
    EXPECT_EQ(less.time, TotalCost(graph));
    EXPECT_EQ(Copies(less.schedule), gone);
  }
}

// A chain of layers with parameters, then their updates. The state of every other one is on the host between steps.
Graph StepWithState(int layers) {
  Graph graph = Chain(layers);
  for (size_t i = 0; i < graph.storages.size(); ++i)
    graph.storages[i].bytes = 100 + 37 * static_cast<Bytes>(i * 7 % 11);
  for (size_t i = 0; i < graph.operators.size(); ++i) {
    graph.operators[i].cost = i % 3 == 0 ? 400 : 20 + static_cast<Nanoseconds>(i * 5 % 7);
    graph.operators[i].phase = i < At(layers) ? Phase::kForward : Phase::kBackward;
  }
  graph.operators[At(layers)].workspace = 1000;
  const auto add = [&](const char* name, Bytes bytes, bool given, bool held) {
    graph.storages.push_back({.name = name, .bytes = bytes, .given = given, .kept = true});
    graph.storages.back().held = graph.storages.back().movable = held;
    return static_cast<StorageId>(graph.storages.size()) - 1;
  };
  for (int i = 0; i < layers; ++i) {
    const StorageId w = add("w", 300, true, true), g = add("g", 300, false, true), m = add("m", 600, true, false);
    graph.storages[At(m)].away = i % 2 == 0;
    Operator &forward = graph.operators[At(i)], &backward = graph.operators[At(2 * layers - i)];
    forward.reads.push_back(w);
    backward.reads.push_back(w);
    backward.writes.push_back(g);
    graph.operators.push_back({.name = "update", .cost = 10, .reads = {g}, .updates = {m, w}, .phase = Phase::kUpdate});
  }
  return graph;
}

TEST(SearchTest, BeginsWithWhatACutHolds) {
  const Graph graph = StepWithState(40);
  ASSERT_TRUE(Check(graph).ok()) << Check(graph);
  const Values values = ValuesOf(graph);
  const Bytes budget = LeastMemory(graph, true);
  for (const double speed : {0.5, 1.0, 2.0, 4.0}) {
    SCOPED_TRACE(speed);
    const Machine machine = {.bytes_per_ns_to_host = speed, .bytes_per_ns_to_device = speed};
    const absl::StatusOr<TimeBound> bound =
        LeastTime(graph, values, budget, {.keeps_order = true, .swap = true, .machine = machine});
    ASSERT_TRUE(bound.ok()) << bound.status();
    Search search(graph, values, machine);
    const Found found = search.Run({.budget = budget, .swap = true, .steps = 1});
    ASSERT_TRUE(found.fits);
    EXPECT_EQ(Verify(graph, found.schedule), "");
    EXPECT_LE(static_cast<double>(found.time), 1.05 * static_cast<double>(bound->time));
  }
}

TEST(SearchTest, WhatPassesGoesBeforeWhatIsFaster) {
  const Graph graph = Chain(40, 100, 10);
  const Values values = ValuesOf(graph);
  const Bytes whole = Simulate(graph, Baseline(graph))->live_peak;
  SearchOptions options = {.budget = whole - 1500, .swap = true, .steps = 2000};
  Search search(graph, values);
  const Found any = search.Run(options);
  ASSERT_TRUE(any.fits);
  EXPECT_FALSE(any.passes);
  ASSERT_GT(Copies(any.schedule), 0);
  options.passes = [](const Schedule& schedule) { return Copies(schedule) == 0; };
  const Found again = search.Run(options);
  ASSERT_TRUE(again.passes);
  EXPECT_EQ(Copies(again.schedule), 0);
  EXPECT_GT(again.time, any.time);
  EXPECT_EQ(Verify(graph, again.schedule), "");
  options.passes = [](const Schedule&) { return false; };
  const Found none = search.Run(options);
  EXPECT_TRUE(none.fits);
  EXPECT_FALSE(none.passes);
}

// Griewank's bound: with room for s results a chain of l layers takes at most r more passes, if l ≤ (s + r)! / (s! r!).
TEST(SearchTest, AChainInTheLeastMemory) {
  const Graph graph = Chain(64);
  const Values values = ValuesOf(graph);
  const Found found = Search(graph, values).Run({.budget = 500, .steps = 2000});
  ASSERT_TRUE(found.fits);
  EXPECT_LE(found.time, 40 * TotalCost(graph));
}

TEST(SearchTest, TheSameAgain) {
  std::mt19937_64 random(9);
  int fits = 0;
  for (int i = 0; i < 40; ++i) {
    const Graph graph = RandomGraph(random, 30);
    if (!Check(graph).ok()) continue;
    const Values values = ValuesOf(graph);
    const Bytes budget = (Simulate(graph, Baseline(graph))->live_peak * 2 + LeastMemory(graph, false)) / 3;
    const Found one = Search(graph, values).Run({.budget = budget, .steps = 200});
    const Found other = Search(graph, values).Run({.budget = budget, .steps = 200});
    EXPECT_EQ(one.fits, other.fits);
    EXPECT_EQ(one.choice.ways, other.choice.ways);
    EXPECT_EQ(one.time, other.time);
    fits += one.fits ? 1 : 0;
  }
  EXPECT_GT(fits, 5);
}

// Budgets from the least to the program's. Random graphs overwrite operands of recomputations. If a value can be
// recomputed only long before its use, and DTR happens to do so, the search has no such plan.
TEST(SearchTest, SlowerThanTheOtherPlannersInFewDrawnGraphs) {
  std::mt19937_64 random(31);
  int compared = 0, slower = 0, faster = 0;
  for (int i = 0; i < testing::Runs(1500); ++i) {
    const Graph graph = RandomGraph(random, 8 + i % 50);
    if (!Check(graph).ok()) continue;
    const Values values = ValuesOf(graph);
    const Bytes most = Simulate(graph, Baseline(graph))->live_peak, least = LeastMemory(graph, false);
    const EchoPlan echo = PlanByEcho(graph, values);
    std::vector<Outcome> others = {*Simulate(graph, BuildSchedule(graph, values, echo.ways, {}, &echo.again).schedule)};
    for (const ChenPlan& plan : SearchSegments(graph, values)) others.push_back(plan.outcome);
    Search search(graph, values);
    for (int part = 0; part < 5; ++part) {
      const Bytes budget = least + (most - least) * part / 5;
      Nanoseconds best = INT64_MAX;
      for (const Outcome& outcome : others) {
        if (outcome.live_peak <= budget) best = std::min(best, outcome.time);
      }
      const absl::StatusOr<Schedule> dtr = ScheduleByDtr(graph, values, budget);
      if (dtr.ok()) best = std::min(best, Simulate(graph, *dtr)->time);
      if (best == INT64_MAX) continue;
      const Found found = search.Run({.budget = budget, .steps = 500});
      ++compared;
      slower += !found.fits || found.time > best ? 1 : 0;
      faster += found.fits && found.time < best ? 1 : 0;
    }
  }
  EXPECT_GT(compared, testing::Runs(300));
  EXPECT_LE(slower, compared / 25);
  EXPECT_GE(faster, compared / 8);
}

}  // namespace
}  // namespace hotpack::remat
