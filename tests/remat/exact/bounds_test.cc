// Bounds are below every plan: the best one, where all can be enumerated, and those of every planner.
#include "remat/exact/bounds.h"

#include <gtest/gtest.h>

#include "remat/baselines/dtr.h"
#include "remat/core/cut.h"
#include "remat/core/load.h"
#include "remat/core/update_slices.h"
#include "remat/exact/all_plans.h"
#include "remat/exact/knapsack.h"
#include "remat/search/search.h"
#include "tests/remat/exact/brute_force.h"
#include "tests/remat/small_graphs.h"
#include "tests/runs.h"

namespace hotpack::remat {
namespace {

Nanoseconds Bound(const Graph& graph, Bytes budget, const BoundOptions& options = {}) {
  const absl::StatusOr<TimeBound> bound = LeastTime(graph, ValuesOf(graph), budget, options);
  EXPECT_TRUE(bound.ok()) << bound.status();
  return bound.ok() ? bound->time : -1;
}

TEST(CutTest, OfASmallNetwork) {
  FlowNetwork network;
  const int32_t a = network.AddNode(), b = network.AddNode();
  network.AddArc(FlowNetwork::kSource, a, 3);
  network.AddArc(FlowNetwork::kSource, b, 5);
  network.AddArc(a, b, kUncut);
  network.AddArc(a, FlowNetwork::kSink, 2);
  network.AddArc(b, FlowNetwork::kSink, 7);
  network.Cut();  // 8 = 3 + 5 from the source; 9 into the sink
  EXPECT_FALSE(network.OnSourceSide(a));
  EXPECT_FALSE(network.OnSourceSide(b));
}

TEST(BoundsTest, NothingAgainWhereTheBudgetIsEnough) {
  const Graph graph = Chain(10);
  const absl::StatusOr<Outcome> outcome = Simulate(graph, Baseline(graph));
  const absl::StatusOr<TimeBound> bound = LeastTime(graph, ValuesOf(graph), outcome->live_peak);
  ASSERT_TRUE(bound.ok());
  EXPECT_EQ(bound->time, TotalCost(graph));
  EXPECT_TRUE(bound->points.empty());
}

// At the loss of a chain of 40 layers, x0 to x39 are wanted behind it, and x40 and g40 are resident. Of 42 storages
// those that the budget does not hold are recomputed.
TEST(BoundsTest, OfAChainEachLayerThatDoesNotFitRunsAgain) {
  const Graph graph = Chain(40);
  for (int held : {42, 41, 40, 30, 12})
    EXPECT_EQ(Bound(graph, held * 100, {.points = 1}), TotalCost(graph) + (42 - held) * 10) << held;
  // x0 is given, so that one layer fewer than would fill the budget may be away.
  EXPECT_GE(Bound(graph, 1200), Bound(graph, 1200, {.points = 1}));
}

// Cheap and large first, and half of a layer is half of its time, rounded up.
TEST(BoundsTest, TheCheapestForItsBytes) {
  Graph graph = Chain(4);          // at the loss: x0 to x3 wanted, x4 and g4 there
  graph.operators[0].cost = 7;     // x1
  graph.operators[1].cost = 1000;  // x2
  graph.operators[2].cost = 100;   // x3
  const auto again = [&](Bytes budget, int points, int branches) {
    return Bound(graph, budget, {.points = points, .branches = branches}) - TotalCost(graph);
  };
  EXPECT_EQ(again(600, 1, 0), 0);
  EXPECT_EQ(again(550, 1, 0), 4);
  EXPECT_EQ(again(500, 1, 0), 7);
  EXPECT_EQ(again(450, 1, 0), 57);
  EXPECT_EQ(again(400, 1, 0), 107);
  // At b4 x3 is resident, and of x1 and x2 only as much as fits next to x0, g4 and g3.
  EXPECT_EQ(again(450, 8, 0), 507);
  EXPECT_EQ(again(400, 8, 0), 1007);
  // Whole layers.
  EXPECT_EQ(again(550, 1, 20), 7);
  EXPECT_EQ(again(450, 1, 20), 107);
  EXPECT_EQ(again(450, 8, 20), 1007);
}

// Recomputations for recomputations count, unless the operand is held instead: y needs h, which no other operator uses.
TEST(BoundsTest, WhatIsNeededToMakeItAgainCounts) {
  Graph graph;
  for (const char* name : {"x", "h", "y", "z", "e"}) graph.storages.push_back({name, 100});
  graph.storages[0].given = graph.storages[0].kept = graph.storages[4].kept = true;
  const auto add = [&](Nanoseconds cost, std::vector<StorageId> reads, std::vector<StorageId> writes) {
    graph.operators.push_back({.name = "o", .cost = cost, .reads = std::move(reads), .writes = std::move(writes)});
  };
  add(50, {0}, {1});  // x → h
  add(5, {1}, {2});   // h → y
  add(1, {2}, {3});   // y → z
  graph.operators.back().workspace = 200;
  add(1, {2, 3}, {4});             // y, z → e
  graph.operators[2].reads = {0};  // x → z: y is not needed there
  ASSERT_TRUE(Check(graph).ok());
  // At z: x and z are resident, with the workspace. y is wanted: held, or recomputed with h.
  EXPECT_EQ(Bound(graph, 500, {.keeps_order = true}), TotalCost(graph));
  EXPECT_EQ(Bound(graph, 499, {.keeps_order = true, .branches = 0}),
            TotalCost(graph) + 1);  // a hundredth of 55, rounded up
  EXPECT_EQ(Bound(graph, 499, {.keeps_order = true}), TotalCost(graph) + 55);
  // In another order nothing is recomputed: z first.
  EXPECT_EQ(Bound(graph, 499), TotalCost(graph));
  EXPECT_EQ(BruteForce(graph, 499).time, TotalCost(graph));
  EXPECT_EQ(BruteForce(graph, 499, {.keeps_order = true}).time, TotalCost(graph) + 55);
}

TEST(BoundsTest, NoBudgetForWhatCannotBeMadeAgain) {
  Graph graph = Chain(4);
  for (Operator& op : graph.operators) op.once = true;
  const absl::StatusOr<TimeBound> bound = LeastTime(graph, ValuesOf(graph), 500);
  EXPECT_EQ(bound.status().message(), "a budget of 500 bytes: every plan needs at least 600");
  EXPECT_EQ(bound.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(LeastBytes(graph, ValuesOf(graph)), 600);
  EXPECT_EQ(LeastBytes(Chain(4), ValuesOf(Chain(4))), 400);  // b4: x3, g4, g3, and x0, which is given
}

TEST(BoundsTest, BelowTheBestPlanOfSmallGraphs) {
  std::mt19937_64 random(20261122);
  int compared = 0, above_total = 0, tight = 0, in_order_above = 0, impossible = 0;
  for (int i = 0; i < testing::Runs(1500); ++i) {
    Graph graph = RandomGraph(random, 2 + i % 5);
    for (Storage& storage : graph.storages) storage.bytes = storage.bytes / 64 % 7 * 10;
    for (Operator& op : graph.operators) {
      op.workspace /= 64;
      std::erase_if(op.in_place, [&](const InPlace& pair) {
        return graph.storages[static_cast<size_t>(pair.read)].bytes <
               graph.storages[static_cast<size_t>(pair.made)].bytes;
      });
    }
    if (!Check(graph).ok() || graph.storages.size() > 9) continue;
    const absl::StatusOr<Outcome> baseline = Simulate(graph, Baseline(graph));
    ASSERT_TRUE(baseline.ok());
    for (const int part : {97, 92, 85, 70, 55}) {
      const Bytes budget = baseline->live_peak * part / 100;
      for (const bool keeps_order : {false, true}) {
        const BruteForceAnswer all = BruteForce(graph, budget, {.keeps_order = keeps_order, .most_states = 20'000});
        if (!all.complete) continue;
        const absl::StatusOr<TimeBound> bound = LeastTime(graph, ValuesOf(graph), budget, {.keeps_order = keeps_order});
        if (!bound.ok()) {
          EXPECT_FALSE(all.time.has_value()) << i << " " << budget << " " << bound.status();
          ++impossible;
          continue;
        }
        if (!all.time) continue;
        EXPECT_LE(LeastBytes(graph, ValuesOf(graph), {.keeps_order = keeps_order}), budget) << i;
        ++compared;
        EXPECT_LE(bound->time, *all.time) << i << " " << budget << " " << keeps_order;
        EXPECT_GE(bound->time,
                  LeastTime(graph, ValuesOf(graph), budget, {.keeps_order = keeps_order, .branches = 0})->time);
        above_total += bound->time > TotalCost(graph) ? 1 : 0;
        tight += bound->time == *all.time && bound->time > TotalCost(graph) ? 1 : 0;
        in_order_above += keeps_order && bound->time > LeastTime(graph, ValuesOf(graph), budget)->time ? 1 : 0;
      }
    }
  }
  RecordProperty("compared", compared);
  RecordProperty("above_total", above_total);
  RecordProperty("tight", tight);
  printf("%d compared, %d bounds above one run each, %d of them reached, %d higher in order, %d impossible\n", compared,
         above_total, tight, in_order_above, impossible);
  EXPECT_GT(compared, testing::Runs(500));
  EXPECT_GT(above_total, testing::Runs(20));
  EXPECT_GT(tight, above_total / 2);
  EXPECT_GT(impossible, testing::Runs(5));
}

// Chains are where most has to run again: with uneven sizes and costs, against all plans.
TEST(BoundsTest, BelowTheBestPlanOfSmallChains) {
  std::mt19937_64 random(7);
  const auto draw = [&random](int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random);
  };
  int above_total = 0, tight = 0;
  for (int i = 0; i < testing::Runs(150); ++i) {
    Graph graph = Chain(3);
    for (Storage& storage : graph.storages) storage.bytes = draw(1, 6) * 10;
    for (Operator& op : graph.operators) op.cost = draw(1, 40);
    const Bytes most = Simulate(graph, Baseline(graph))->live_peak;
    for (Bytes budget = most / 2; budget <= most; budget += 7) {
      const BruteForceAnswer all = BruteForce(graph, budget);
      const absl::StatusOr<TimeBound> bound = LeastTime(graph, ValuesOf(graph), budget);
      if (!all.complete || !all.time) continue;
      ASSERT_TRUE(bound.ok());
      EXPECT_LE(bound->time, *all.time) << i << " " << budget;
      above_total += bound->time > TotalCost(graph) ? 1 : 0;
      tight += bound->time == *all.time && bound->time > TotalCost(graph) ? 1 : 0;
    }
  }
  printf("%d above one run each, %d of them reached\n", above_total, tight);
  EXPECT_GT(above_total, testing::Runs(200));
  EXPECT_GT(tight, above_total / 2);
}

TEST(BoundsTest, BelowEveryPlanner) {
  std::mt19937_64 random(3);
  int compared = 0, with_copies = 0;
  for (int i = 0; i < testing::Runs(120); ++i) {
    Graph graph = i % 3 == 0 ? Chain(4 + i % 9) : RandomGraph(random, 5 + i % 25);
    for (Storage& storage : graph.storages) storage.bytes += static_cast<Bytes>(random() % 50);
    for (Operator& op : graph.operators) op.in_place.clear(), op.cost += static_cast<Nanoseconds>(random() % 9);
    if (!Check(graph).ok()) continue;
    const Values values = ValuesOf(graph);
    for (const bool swap : {false, true}) {
      const Machine machine = {.bytes_per_ns_to_host = 3.0, .bytes_per_ns_to_device = 2.0};
      Search search(graph, values, machine);
      const Bytes most = Simulate(graph, Baseline(graph))->live_peak, least = LeastMemory(graph, swap);
      constexpr int kParts = 8;
      for (int part = 0; part < kParts; ++part) {
        const Found plan = search.Run({.budget = least + (most - least) * part / kParts, .swap = swap, .steps = 100});
        if (!plan.fits) continue;
        const absl::StatusOr<TimeBound> any = LeastTime(graph, values, plan.peak, {.swap = swap, .machine = machine});
        const absl::StatusOr<TimeBound> ordered =
            LeastTime(graph, values, plan.peak, {.keeps_order = true, .swap = swap, .machine = machine});
        ASSERT_TRUE(any.ok() && ordered.ok()) << i << any.status() << ordered.status();
        EXPECT_LE(ordered->time, plan.time) << i << " " << plan.peak << " " << swap;
        EXPECT_LE(any->time, ordered->time) << i;
        ++compared;
        with_copies += swap && ordered->time > TotalCost(graph) ? 1 : 0;
        if (swap) continue;
        for (const absl::StatusOr<Schedule>& schedule :
             {ScheduleByDtr(graph, values, plan.peak), ScheduleByKnapsack(graph, values, plan.peak)}) {
          if (!schedule.ok()) continue;
          EXPECT_LE(LeastTime(graph, values, plan.peak, {.keeps_order = true})->time, Simulate(graph, *schedule)->time);
        }
      }
    }
  }
  printf("%d plans, %d with copies bounded above one run each\n", compared, with_copies);
  EXPECT_GT(compared, testing::Runs(300));
  EXPECT_GT(with_copies, testing::Runs(10));
}

// More memory is never worse. Copies that do not return in time never lower the bound.
TEST(BoundsTest, FallsWithTheBudgetAndWithCopies) {
  const Graph graph = Chain(30);
  Nanoseconds before = INT64_MAX;
  for (Bytes budget = 800; budget <= 3300; budget += 100) {
    const Nanoseconds time = Bound(graph, budget, {.keeps_order = true, .points = 1});
    EXPECT_LE(time, before) << budget;
    before = time;
    const Machine slow = {.bytes_per_ns_to_host = 0.001, .bytes_per_ns_to_device = 0.001},
                  fast = {.bytes_per_ns_to_host = 1e6, .bytes_per_ns_to_device = 1e6};
    EXPECT_LE(Bound(graph, budget, {.keeps_order = true, .swap = true, .machine = slow, .points = 1}), time);
    EXPECT_EQ(Bound(graph, budget, {.swap = true, .machine = fast}), TotalCost(graph));
  }
  const Machine slow = {.bytes_per_ns_to_host = 1, .bytes_per_ns_to_device = 1};
  EXPECT_GT(Bound(graph, 1000, {.swap = true, .machine = slow, .points = 1}), TotalCost(graph));
}

// Three states of some 100 bytes leave behind the first slice's momentum, whatever the budget.
TEST(BoundsTest, StateOnTheHostReturnsThere) {
  Graph graph = UpdateStep(3, 100);
  for (Storage& storage : graph.storages) storage.movable = storage.kept;
  SlicedGraph sliced = SliceUpdates(graph, 0);
  ASSERT_TRUE(SendStateAway(sliced.slices, 3, &sliced.graph));
  Bytes returned = 0;
  for (const Storage& storage : sliced.graph.storages) returned += storage.away ? storage.bytes : 0;
  ASSERT_GE(returned, 300);
  Nanoseconds backward = 0;
  for (const Operator& op : sliced.graph.operators) backward += op.phase == Phase::kBackward ? op.cost : 0;
  const BoundOptions options = {
      .keeps_order = true, .swap = true, .machine = {.bytes_per_ns_to_host = 1, .bytes_per_ns_to_device = 1000}};
  const Nanoseconds bound = Bound(sliced.graph, 10'000, options);
  EXPECT_GE(bound, backward + returned);
  const Found found =
      Search(sliced.graph, ValuesOf(sliced.graph), options.machine).Run({.budget = 10'000, .swap = true, .steps = 100});
  ASSERT_TRUE(found.fits);
  EXPECT_LE(bound, found.time);
}

// "peak" leaves room for the activation, which takes 300 ns to make again, or for the state on the device, which takes
// 400 ns to copy out. Nothing uses that state before the update, and the other one is on the host.
TEST(BoundsTest, WhatIsUsedOnlyLaterIsAwayToo) {
  Graph graph;
  constexpr Bytes kActivation = 4000, kOnDevice = 4000, kOnHost = 1200, kWorkspace = 10'000;
  enum : StorageId { kX, kHere, kThere, kMade, kLast };
  const auto add = [&](const char* name, Bytes bytes, bool state, bool away) {
    graph.storages.push_back({.name = name, .bytes = bytes, .given = state, .kept = state, .away = away});
    graph.released_after.push_back(kNever);
  };
  add("x", kActivation, false, false), add("here", kOnDevice, true, false), add("there", kOnHost, true, true);
  add("made", 1, false, false), add("last", 1, false, false);
  graph.operators = {{.name = "makes x", .cost = 300, .writes = {kX}},
                     {.name = "peak", .cost = 10, .writes = {kMade}, .workspace = kWorkspace},
                     {.name = "long", .cost = 500, .reads = {kX, kMade}, .writes = {kLast}},
                     {.name = "first slice", .cost = 10, .reads = {kLast}, .updates = {kThere}},
                     {.name = "second slice", .cost = 10, .reads = {kLast}, .updates = {kHere}}};
  ASSERT_TRUE(Check(graph).ok()) << Check(graph);
  const Machine machine = {.bytes_per_ns_to_host = 10, .bytes_per_ns_to_device = 10};
  const Bytes budget = kWorkspace + kActivation + 2;
  const AllPlansAnswer best = SearchAllPlans(graph, {.budget = budget, .machine = machine, .swap = true});
  ASSERT_TRUE(best.complete && best.schedule);
  const Nanoseconds bound = Bound(graph, budget, {.keeps_order = true, .swap = true, .machine = machine});
  constexpr Nanoseconds kBehind = 10 + 500 + 10 + kOnHost / 10;  // "peak" and on; the second slice runs meanwhile
  EXPECT_EQ(best.time, kOnDevice / 10 + kBehind);
  EXPECT_LE(bound, best.time);
  EXPECT_GT(bound, 300 + kBehind + 60) << "the relaxed bound makes a part of x again";
}

}  // namespace
}  // namespace hotpack::remat
