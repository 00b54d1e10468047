// Plans with copies, slices and held storages against all plans of tiny graphs.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "remat/core/load.h"
#include "remat/core/simulator.h"
#include "remat/core/update_slices.h"
#include "remat/core/verifier.h"
#include "remat/exact/bounds.h"
#include "remat/search/search.h"
#include "tests/remat/exact/brute_force.h"
#include "tests/remat/small_graphs.h"
#include "tests/runs.h"

namespace hotpack::remat {
namespace {

int64_t Draw(std::mt19937_64& random, int64_t least, int64_t most) {
  return std::uniform_int_distribution<int64_t>(least, most)(random);
}

// One layer, its gradient, and an optimizer with state for two parameters that its update treats in two slices.
Graph TinyStep(std::mt19937_64& random) {
  Graph graph;
  const auto add = [&](const char* name, bool given, bool kept, bool held) {
    graph.storages.push_back({.name = name, .bytes = 10 * Draw(random, 1, 6), .given = given, .kept = kept});
    graph.storages.back().held = held;
    graph.storages.back().movable = held && kept;
    graph.released_after.push_back(kNever);
  };
  enum { kX, kY, kG, kM0, kM1, kW, kT };
  add("x", false, false, false), add("y", false, false, Draw(random, 0, 3) == 0), add("g", false, true, true);
  add("m0", true, true, false), add("m1", true, true, false), add("w", true, true, true), add("t", false, false, false);
  const auto run = [&](const char* name, std::vector<StorageId> reads, std::vector<StorageId> writes,
                       std::vector<StorageId> updates, Phase phase) {
    graph.operators.push_back({.name = name,
                               .cost = Draw(random, 1, 30),
                               .reads = std::move(reads),
                               .writes = std::move(writes),
                               .updates = std::move(updates),
                               .phase = phase});
  };
  run("f1", {kW}, {kX}, {}, Phase::kForward);
  run("f2", {kX}, {kY}, {}, Phase::kForward);
  run("b2", {kX, kY}, {kT}, {}, Phase::kBackward);
  // The program holds y up to here, sometimes.
  const std::vector<StorageId> with_y = {kT, kX, kY}, without = {kT, kX};
  run("b1", graph.storages[kY].held ? with_y : without, {kG}, {}, Phase::kBackward);
  run("update", {kG}, {}, {kM0, kM1}, Phase::kUpdate);
  if (graph.storages[kY].held) graph.released_after[kY] = 3;
  graph.released_after[kX] = 3, graph.released_after[kT] = 3;
  if (!graph.storages[kY].held) graph.released_after[kY] = 2;
  graph.updates.push_back({.begin = 4, .end = 5, .part_of = {-1, -1, -1, 0, 1, -1, -1}, .parts = 2});
  Graph sliced = SliceUpdates(graph, 0).graph;
  sliced.storages[kM0].away = Draw(random, 0, 2) == 0;
  sliced.storages[kM1].away = Draw(random, 0, 2) == 0;
  return sliced;
}

Graph TinyChain(std::mt19937_64& random) {
  Graph graph = Chain(2);
  for (Storage& storage : graph.storages) storage.bytes = 10 * Draw(random, 1, 6);
  for (Operator& op : graph.operators) op.cost = Draw(random, 1, 30);
  return graph;
}

// What the program needs if nothing is away.
Bytes PeakOnTheDevice(Graph graph) {
  for (Storage& storage : graph.storages) storage.away = false;
  return Simulate(graph, Baseline(graph))->live_peak;
}

TEST(CopiesTest, AgainstAllPlansOfTinyGraphs) {
  std::mt19937_64 random(26);
  int compared = 0, equal = 0, copied = 0, bounded = 0, missed = 0;
  for (int i = 0; i < std::max(6, testing::Runs(14)); ++i) {
    const Graph graph = i % 2 == 0 ? TinyStep(random) : TinyChain(random);
    ASSERT_TRUE(Check(graph).ok()) << Check(graph);
    const Values values = ValuesOf(graph);
    const double speed = static_cast<double>(Draw(random, 1, 8));
    const Machine machine = {.bytes_per_ns_to_host = speed, .bytes_per_ns_to_device = speed};
    Search search(graph, values, machine);
    const Bytes most = PeakOnTheDevice(graph), least = LeastMemory(graph, true);
    for (int part = 0; part < 3; ++part) {
      const Bytes budget = least + (most - least) * part / 3;
      const BruteForceAnswer all = BruteForceWithCopies(graph, budget, speed, 20'000);
      if (!all.complete) continue;
      const Found found = search.Run({.budget = budget, .swap = true, .steps = 300});
      const absl::StatusOr<TimeBound> bound =
          LeastTime(graph, values, budget, {.keeps_order = true, .swap = true, .machine = machine});
      if (!all.time) {
        EXPECT_FALSE(found.fits) << i << " " << budget;
        continue;
      }
      ASSERT_TRUE(bound.ok()) << i << " " << budget << bound.status();
      EXPECT_LE(bound->time, *all.time) << i << " " << budget;
      bounded += bound->time > TotalCost(graph) ? 1 : 0;
      ++compared;
      if (!found.fits) {
        ++missed;
        continue;
      }
      EXPECT_EQ(Verify(graph, found.schedule), "") << i;
      const absl::StatusOr<Outcome> outcome = Simulate(graph, found.schedule, machine);
      ASSERT_TRUE(outcome.ok()) << outcome.status();
      EXPECT_EQ(outcome->time, found.time);
      EXPECT_LE(outcome->live_peak, budget);
      EXPECT_GE(found.time, *all.time) << i << " " << budget;
      equal += found.time == *all.time ? 1 : 0;
      copied += outcome->copies > 0 ? 1 : 0;
    }
  }
  printf("%d compared, %d equal to the best of all plans, %d with copies, %d bounds above one run each, %d missed\n",
         compared, equal, copied, bounded, missed);
  EXPECT_GT(compared, testing::Runs(20));
  EXPECT_GT(copied, testing::Runs(15));
  EXPECT_GT(bounded, testing::Runs(2));
  EXPECT_GT(equal, compared * 9 / 10);
  EXPECT_LE(missed, compared / 50);
}

}  // namespace
}  // namespace hotpack::remat
