// What drawn graphs (copies_test.cc) hardly ever need: steps made for one kind of move each.
#include "remat/exact/all_plans.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "remat/core/simulator.h"
#include "remat/core/verifier.h"
#include "tests/remat/exact/brute_force.h"

namespace hotpack::remat {
namespace {

constexpr Machine kOneByteANs = {.bytes_per_ns_to_host = 1, .bytes_per_ns_to_device = 1};

StorageId Add(Graph* graph, Storage storage) {
  graph->storages.push_back(std::move(storage));
  graph->released_after.push_back(kNever);
  return static_cast<StorageId>(graph->storages.size()) - 1;
}

// The fastest plan, which is right, and as fast as an enumeration says.
Schedule Fastest(const Graph& graph, Bytes budget) {
  EXPECT_TRUE(Check(graph).ok()) << Check(graph);
  const AllPlansAnswer all = SearchAllPlans(graph, {.budget = budget, .machine = kOneByteANs, .swap = true});
  const BruteForceAnswer enumerated = BruteForceWithCopies(graph, budget, {.bytes_per_ns = 1});
  EXPECT_TRUE(all.complete && all.schedule && enumerated.complete && enumerated.time);
  if (!all.schedule || !enumerated.time) return {};
  EXPECT_EQ(all.time, *enumerated.time);
  EXPECT_EQ(Verify(graph, *all.schedule), "");
  const absl::StatusOr<Outcome> outcome = Simulate(graph, *all.schedule, kOneByteANs);
  EXPECT_TRUE(outcome.ok() && outcome->time == all.time && outcome->live_peak <= budget) << outcome.status();
  return *all.schedule;
}

int64_t Count(const Schedule& schedule, ActionKind kind, int32_t target) {
  return std::count_if(schedule.actions.begin(), schedule.actions.end(),
                       [&](const Action& each) { return each.kind == kind && each.target == target; });
}
size_t First(const Schedule& schedule, ActionKind kind, int32_t target) {
  const auto found = std::find_if(schedule.actions.begin(), schedule.actions.end(),
                                  [&](const Action& each) { return each.kind == kind && each.target == target; });
  return static_cast<size_t>(found - schedule.actions.begin());
}

// a is copied while its engine is idle, before b is made, which leaves first.
TEST(AllPlansTest, CopiesEarlierWhereTheEngineIsIdle) {
  Graph graph;
  const StorageId a = Add(&graph, {.name = "a", .bytes = 40}), b = Add(&graph, {.name = "b", .bytes = 40}),
                  c = Add(&graph, {.name = "c", .bytes = 60}), d = Add(&graph, {.name = "d", .bytes = 60}),
                  e = Add(&graph, {.name = "e", .bytes = 1, .kept = true});
  graph.operators = {{.name = "a", .cost = 1, .writes = {a}, .once = true},
                     {.name = "b", .cost = 50, .reads = {a}, .writes = {b}, .once = true},
                     {.name = "c", .cost = 1, .reads = {a}, .writes = {c}, .once = true},
                     {.name = "d", .cost = 1, .reads = {c}, .writes = {d}, .once = true},
                     {.name = "e", .cost = 1, .reads = {a, b}, .writes = {e}, .once = true}};
  const Schedule plan = Fastest(graph, 121);
  EXPECT_LT(First(plan, ActionKind::kOffload, a), First(plan, ActionKind::kOffload, b));
  EXPECT_LT(First(plan, ActionKind::kDrop, b), First(plan, ActionKind::kDrop, a));
}

// No operator reads what g holds, but the program does hold it.
TEST(AllPlansTest, WhatIsHeldLeavesOnlyWithACopy) {
  Graph graph;
  const StorageId g = Add(&graph, {.name = "g", .bytes = 50, .given = true, .kept = true}),
                  t = Add(&graph, {.name = "t", .bytes = 80}), r = Add(&graph, {.name = "r", .bytes = 1, .kept = true});
  graph.storages[At(g)].held = graph.storages[At(g)].movable = true;
  graph.operators = {{.name = "t", .cost = 1, .writes = {t}},
                     {.name = "r", .cost = 1, .reads = {t}, .writes = {r}},
                     {.name = "g", .cost = 1, .reads = {r}, .writes = {g}}};
  EXPECT_EQ(Count(Fastest(graph, 100), ActionKind::kOffload, g), 1);
}

// It returns by a copy, although its operator takes a hundredth of that time.
TEST(AllPlansTest, WhatIsHeldIsNotMadeAgain) {
  Graph graph;
  const StorageId x = Add(&graph, {.name = "x", .bytes = 1, .given = true, .kept = true}),
                  g = Add(&graph, {.name = "g", .bytes = 100, .kept = true}),
                  t = Add(&graph, {.name = "t", .bytes = 80}), r = Add(&graph, {.name = "r", .bytes = 1, .kept = true});
  graph.storages[At(g)].held = graph.storages[At(g)].movable = true;
  graph.operators = {{.name = "g", .cost = 1, .reads = {x}, .writes = {g}},
                     {.name = "t", .cost = 1, .reads = {x}, .writes = {t}},
                     {.name = "r", .cost = 1, .reads = {t}, .writes = {r}}};
  const Schedule plan = Fastest(graph, 150);
  EXPECT_EQ(Count(plan, ActionKind::kRun, 0), 1);
  EXPECT_EQ(Count(plan, ActionKind::kPrefetch, g), 1);
}

// y is computed twice, both times from the old x. So the old x is copied to the host before `change` runs.
TEST(AllPlansTest, SavesWhatIsOverwritten) {
  Graph graph;
  const StorageId x = Add(&graph, {.name = "x", .bytes = 10, .given = true, .kept = true}),
                  y = Add(&graph, {.name = "y", .bytes = 1000}), t = Add(&graph, {.name = "t", .bytes = 1000}),
                  r = Add(&graph, {.name = "r", .bytes = 1, .kept = true});
  graph.operators = {{.name = "y", .cost = 1, .reads = {x}, .writes = {y}},
                     {.name = "change", .cost = 1, .updates = {x}},
                     {.name = "t", .cost = 1, .reads = {x}, .writes = {t}},
                     {.name = "t read", .cost = 1, .reads = {t}},
                     {.name = "r", .cost = 1, .reads = {y}, .writes = {r}}};
  const Schedule plan = Fastest(graph, 1100);
  EXPECT_EQ(Count(plan, ActionKind::kRun, 0), 2);
  EXPECT_LT(First(plan, ActionKind::kOffload, x), First(plan, ActionKind::kRun, 1));
}

TEST(AllPlansTest, EndsWhereStatesOrTimeAreOver) {
  Graph graph;
  for (int i = 0; i < 20; ++i) Add(&graph, {.name = std::string(1, static_cast<char>('a' + i)), .bytes = 10 + i});
  const StorageId r = Add(&graph, {.name = "r", .bytes = 1, .kept = true});
  for (StorageId id = 0; id < r; ++id) graph.operators.push_back({.name = "make", .cost = 3, .writes = {id}});
  for (StorageId id = 0; id < r; ++id) graph.operators.push_back({.name = "use", .cost = 2, .reads = {id}});
  graph.operators.push_back({.name = "last", .cost = 1, .reads = {3, 17}, .writes = {r}});
  ASSERT_TRUE(Check(graph).ok()) << Check(graph);
  AllPlansOptions options = {.budget = 120, .machine = kOneByteANs, .swap = true, .most_states = 1000};
  const AllPlansAnswer few = SearchAllPlans(graph, options);
  EXPECT_FALSE(few.complete);
  options.most_states = INT64_MAX / 100;
  options.time_limit_ns = 1'000'000;
  EXPECT_FALSE(SearchAllPlans(graph, options).complete);
  options.machine.host_memory = 100;
  EXPECT_FALSE(SearchAllPlans(graph, options).complete);
}

TEST(AllPlansTest, LargeGraphsAreNotTaken) {
  Graph graph;
  for (int i = 0; i < 33; ++i) Add(&graph, {.name = "s", .bytes = 1, .given = true});
  EXPECT_FALSE(MaySearchAllPlans(graph));
  graph.storages.pop_back();
  EXPECT_TRUE(MaySearchAllPlans(graph));
  graph.operators.resize(101);
  EXPECT_FALSE(MaySearchAllPlans(graph));
}

}  // namespace
}  // namespace hotpack::remat
