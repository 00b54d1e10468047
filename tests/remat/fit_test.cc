#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "remat/core/load.h"
#include "remat/core/simulator.h"
#include "remat/core/verifier.h"
#include "remat/search/budget_fit.h"
#include "remat/search/decisions_of.h"
#include "tests/remat/small_graphs.h"

namespace hotpack::remat {
namespace {

// Fit()'s result agrees with the simulator and the verifier on its schedule.
void ExpectTrue(const Graph& graph, const BudgetFit& fitted, const Schedule& schedule, Bytes budget) {
  EXPECT_EQ(Verify(graph, schedule), "");
  const absl::StatusOr<Outcome> outcome = Simulate(graph, schedule);
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(outcome->time, fitted.time);
  EXPECT_EQ(outcome->live_peak, fitted.peak);
  EXPECT_LE(fitted.peak, budget);
}

TEST(FitTest, WithAllMemoryNothingGoes) {
  const Graph graph = Chain(20);
  const Values values = ValuesOf(graph);
  Decisions choice = NothingGoes(values);
  Schedule schedule;
  const BudgetFit fitted = BudgetFitter(graph, values).Fit({}, &choice, nullptr, &schedule);
  ASSERT_TRUE(fitted.fits);
  EXPECT_EQ(fitted.evictions, 0);
  EXPECT_EQ(fitted.time, TotalCost(graph));
  ExpectTrue(graph, fitted, schedule, INT64_MAX);
}

TEST(FitTest, AChainInEverLess) {
  const Graph graph = Chain(40);  // 100 bytes a layer
  const Values values = ValuesOf(graph);
  BudgetFitter fitter(graph, values);
  Nanoseconds before = 0;
  for (Bytes budget = 4200; budget >= 400; budget -= 100) {
    Decisions choice = NothingGoes(values);
    Schedule schedule;
    const BudgetFit fitted = fitter.Fit({.budget = budget}, &choice, nullptr, &schedule);
    ASSERT_TRUE(fitted.fits) << budget;
    ExpectTrue(graph, fitted, schedule, budget);
    before = std::max(before, fitted.time);
  }
  EXPECT_GT(before, 2 * TotalCost(graph));
}

TEST(FitTest, DrawnGraphs) {
  std::mt19937_64 random(11);
  int fits = 0, again = 0, below = 0, copies = 0;
  for (int i = 0; i < 3000; ++i) {
    const Graph graph = RandomGraph(random, 2 + i % 40);
    if (!Check(graph).ok()) continue;
    const Values values = ValuesOf(graph);
    BudgetFitter fitter(graph, values);
    const Bytes most = Simulate(graph, Baseline(graph))->live_peak, least = LeastMemory(graph, false);
    for (int part = 0; part < 4; ++part) {
      const Bytes budget = least + (most - least) * part / 3;
      const bool swap = i % 2 == 0;
      const auto fetching = static_cast<Fetching>(i / 2 % static_cast<int>(kFetchings));
      const FitOptions options = {.budget = budget,
                                  .wait = 0.5 * part,
                                  .neighbors = part % 2 == 0,
                                  .noise = 0.3 * part,
                                  .seed = random(),
                                  .fetching = fetching};
      Decisions choice = NothingGoes(values);
      for (GapAction& way : choice.ways)
        way = static_cast<GapAction>(random() % 8 < 6 ? 0 : 1 + random() % (swap ? 3 : 2));
      for (OperatorId& tail : choice.tails) {
        if (random() % 4 == 0) tail = static_cast<OperatorId>(random() % graph.operators.size());
      }
      Schedule schedule;
      const BudgetFit fitted = fitter.Fit(options, &choice, nullptr, &schedule);
      below += budget < most ? 1 : 0;
      if (!fitted.fits) continue;
      ++fits;
      for (const Action& action : schedule.actions) copies += action.kind == ActionKind::kPrefetch ? 1 : 0;
      again += fitted.time > TotalCost(graph) ? 1 : 0;
      ExpectTrue(graph, fitted, schedule, budget);
      if (HasFailure()) FAIL() << "graph " << i << ", part " << part;
    }
  }
  EXPECT_GT(below, 1000);
  EXPECT_GT(fits, 1500);
  EXPECT_GT(again, 1000);
  EXPECT_GT(copies, 500);
}

// x ─(heavy)─ a ─(cheap)─ b; only b is wanted at the end. It is recomputed from a if a stays, otherwise by the heavy
// operator.
TEST(FitTest, WhatIsUsedUpStaysForOthers) {
  Graph graph;
  graph.storages.resize(5);
  for (size_t i = 0; i < graph.storages.size(); ++i) {
    graph.storages[i].name = std::string(1, "xabcd"[i]);
    graph.storages[i].bytes = i == 1 ? 100 : 1000;
  }
  graph.storages[0].given = graph.storages[0].kept = graph.storages[4].kept = true;
  graph.storages[0].bytes = graph.storages[4].bytes = 1;
  const auto add = [&](const char* name, Nanoseconds cost, std::vector<StorageId> reads, StorageId writes) {
    graph.operators.push_back({.name = name, .cost = cost, .reads = std::move(reads), .writes = {writes}});
  };
  add("heavy", 1000, {0}, 1);
  add("cheap", 10, {1}, 2);
  add("between", 100, {0}, 3);
  add("behind", 1, {3}, 4);
  graph.storages.push_back({.name = "e", .bytes = 1, .kept = true});
  add("last", 1, {2, 4}, 5);
  ASSERT_TRUE(Check(graph).ok());
  const Values values = ValuesOf(graph);
  BudgetFitter fitter(graph, values);
  const ValueId a = values.outputs[0][0], b = values.outputs[1][0];
  Decisions choice = NothingGoes(values);
  choice.ways[static_cast<size_t>(values.values[static_cast<size_t>(b)].first_gap)] = GapAction::kRecompute;
  Decisions with = choice;
  with.tails[static_cast<size_t>(a)] = 4;
  EXPECT_EQ(fitter.Fit({}, &choice).time, TotalCost(graph) + 1010);
  EXPECT_EQ(fitter.Fit({}, &with).time, TotalCost(graph) + 10);
  EXPECT_EQ(with.tails[static_cast<size_t>(a)], 4);
}

// a waits on the host for "last"; "peak" needs the memory until just before.
TEST(FitTest, CopiesBackWaitUntilThereIsRoom) {
  Graph graph;
  constexpr Bytes kBytes[] = {1, 1200, 1000, 1};
  for (Bytes bytes : kBytes)
    graph.storages.push_back({.name = std::string(1, static_cast<char>('a' + graph.storages.size())), .bytes = bytes});
  graph.storages[0].given = graph.storages[3].kept = true;
  const auto add = [&](const char* name, Nanoseconds cost, std::vector<StorageId> reads, StorageId writes) {
    graph.operators.push_back({.name = name, .cost = cost, .reads = std::move(reads), .writes = {writes}});
    graph.operators.back().once = true;
  };
  add("first", 10, {0}, 1);
  graph.storages.push_back({.name = "small", .bytes = 1});
  add("long", 500, {0}, 4);
  add("peak", 100, {4}, 2);
  graph.storages.push_back({.name = "result", .bytes = 1});
  add("behind", 20, {2}, 5);
  add("last", 10, {1, 5}, 3);
  ASSERT_TRUE(Check(graph).ok()) << Check(graph);
  const Values values = ValuesOf(graph);
  BudgetFitter fitter(graph, values);
  constexpr Nanoseconds kCopy = 100;  // 1200 bytes
  const GapId gap = values.values[static_cast<size_t>(values.outputs[0][0])].first_gap;
  for (const Bytes budget : {1500, 3000}) {
    Decisions choice = NothingGoes(values);
    choice.ways[static_cast<size_t>(gap)] = GapAction::kOffload;
    Schedule schedule;
    const BudgetFit fitted = fitter.Fit({.budget = budget, .may_evict = false}, &choice, nullptr, &schedule);
    ASSERT_TRUE(fitted.fits) << budget;
    ExpectTrue(graph, fitted, schedule, budget);
    EXPECT_EQ(fitted.time, TotalCost(graph) + (budget == 1500 ? kCopy : 0));
  }
  Decisions choice = NothingGoes(values);
  choice.ways[static_cast<size_t>(gap)] = GapAction::kOffload;
  EXPECT_GT(fitter.Fit({.budget = 1500, .fetching = Fetching::kInTime, .may_evict = false}, &choice).over, 0);
}

// a and b wait on the host. Next to "long" there is room for one of them. Copied as late as possible b would take it,
// and "first user" wait for all of a.
TEST(FitTest, WhatIsUsedFirstReturnsFirst) {
  Graph graph;
  constexpr Bytes kBytes[] = {1200, 1200, 1, 1, 1, 1};
  for (Bytes bytes : kBytes)
    graph.storages.push_back(
        {.name = std::string(1, static_cast<char>('a' + graph.storages.size())), .bytes = bytes, .kept = bytes == 1});
  const auto add = [&](const char* name, Nanoseconds cost, Bytes workspace, std::vector<StorageId> reads,
                       StorageId writes) {
    graph.operators.push_back(
        {.name = name, .cost = cost, .reads = std::move(reads), .writes = {writes}, .workspace = workspace});
    graph.operators.back().once = true;
  };
  add("makes a", 10, 0, {}, 0);
  add("makes b", 300, 0, {}, 1);
  add("between", 300, 0, {}, 2);
  add("peak", 100, 2400, {}, 3);
  add("long", 500, 1200, {}, 4);
  constexpr Nanoseconds kCopy = 100, kFirst = 60;
  add("first user", kFirst, 0, {0}, 5);
  graph.storages.push_back({.name = "result", .bytes = 1, .kept = true});
  add("second user", 10, 0, {1}, 6);
  ASSERT_TRUE(Check(graph).ok()) << Check(graph);
  const Values values = ValuesOf(graph);
  BudgetFitter fitter(graph, values);
  for (const Fetching fetching : {Fetching::kWithRoom, Fetching::kWhenIdle}) {
    Decisions choice = NothingGoes(values);
    for (const OperatorId maker : {0, 1})
      choice.ways[At(values.values[At(values.outputs[At(maker)][0])].first_gap)] = GapAction::kOffload;
    Schedule schedule;
    const BudgetFit fitted =
        fitter.Fit({.budget = 2500, .fetching = fetching, .may_evict = false}, &choice, nullptr, &schedule);
    ASSERT_TRUE(fitted.fits);
    ExpectTrue(graph, fitted, schedule, 2500);
    EXPECT_EQ(fitted.time, TotalCost(graph) + (fetching == Fetching::kWithRoom ? kCopy : kCopy - kFirst));
  }
}

TEST(FitTest, TheSameAgain) {
  const Graph graph = Chain(30);
  const Values values = ValuesOf(graph);
  BudgetFitter fitter(graph, values);
  const FitOptions options = {.budget = 1200, .noise = 0.5, .seed = 3};
  Decisions one = NothingGoes(values), other = one;
  const BudgetFit first = fitter.Fit(options, &one);
  const BudgetFit second = fitter.Fit(options, &other);
  EXPECT_EQ(first.time, second.time);
  EXPECT_EQ(one.ways, other.ways);
  EXPECT_GT(first.evictions, 0);
}

// What a schedule of the fitter's decides is what it was made of.
TEST(DecisionsTest, OfASchedule) {
  const Graph graph = Chain(20);
  const Values values = ValuesOf(graph);
  BudgetFitter fitter(graph, values);
  int read = 0, copied = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Decisions choice = NothingGoes(values);
    Schedule schedule;
    const FitOptions options = {
        .budget = 1200, .noise = 0.5, .seed = seed, .copy_price = seed % 2 == 0 ? 0.1 : -1.0, .may_evict = true};
    const BudgetFit first = fitter.Fit(options, &choice, nullptr, &schedule);
    if (!first.fits) continue;
    Decisions again = DecisionsOf(graph, values, schedule);
    const BudgetFit second = fitter.Fit({.budget = 1200, .may_evict = false}, &again);
    EXPECT_TRUE(second.fits) << seed;
    EXPECT_EQ(second.time, first.time) << seed;
    EXPECT_EQ(second.copies, first.copies) << seed;
    ++read;
    copied += first.copies > 0 ? 1 : 0;
  }
  EXPECT_GT(read, 30);
  EXPECT_GT(copied, 10);
}

}  // namespace
}  // namespace hotpack::remat
