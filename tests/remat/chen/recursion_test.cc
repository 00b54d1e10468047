#include "remat/chen/recursion.h"

#include <gtest/gtest.h>

#include "remat/chen/mirror.h"
#include "remat/chen/segments.h"
#include "remat/core/simulator.h"
#include "remat/core/verifier.h"
#include "remat/networks/residual.h"
#include "remat/networks/training_graph.h"
#include "tests/remat/small_graphs.h"

namespace hotpack::remat {
namespace {

std::vector<Cut> All(const Graph& graph) { return CutsAt(std::vector<bool>(graph.operators.size(), true)); }

TEST(RecursionTest, CountsByHand) {
  const auto first = [](std::vector<int32_t> counts, size_t n) {
    counts.resize(n);
    return counts;
  };
  const Graph eight = Chain(8);
  EXPECT_EQ(first(RecursiveCounts(eight, All(eight), 1, 3), 8), (std::vector<int32_t>{2, 1, 2, 0, 2, 1, 2, 0}));
  EXPECT_EQ(first(RecursiveCounts(eight, All(eight), 1, 1), 8), (std::vector<int32_t>{1, 1, 1, 0, 1, 1, 1, 0}));
  const Graph nine = Chain(9);
  EXPECT_EQ(first(RecursiveCounts(nine, All(nine), 2, 2), 9), (std::vector<int32_t>{1, 1, 0, 1, 1, 0, 1, 1, 0}));
  Graph uneven = Chain(4, 100);
  uneven.storages[1].bytes = 1000;  // as much in x1 as in all others: cut behind it
  EXPECT_EQ(first(RecursiveCounts(uneven, All(uneven), 1, 1), 4), (std::vector<int32_t>{0, 1, 1, 0}));
}

// n = (k+1)^levels layers: equations 2 and 3. Each level but the first runs k/(k+1) of the forward pass again; k·levels
// results are kept.
TEST(RecursionTest, MemoryIsLogarithmic) {
  for (int k : {1, 2, 3}) {
    for (int levels = 1, n = k + 1; n <= 1024; ++levels, n *= k + 1) {
      const Graph graph = Chain(n, 1000, 10);
      const Values values = ValuesOf(graph);
      const std::vector<int32_t> counts = RecursivePlan(graph, values, k, levels);
      const absl::StatusOr<Schedule> schedule = ScheduleByMirror(graph, values, counts);
      ASSERT_TRUE(schedule.ok()) << schedule.status();
      EXPECT_EQ(Verify(graph, *schedule), "");
      const absl::StatusOr<Outcome> outcome = Simulate(graph, *schedule);
      ASSERT_TRUE(outcome.ok());
      EXPECT_EQ(outcome->runs_again, int64_t{levels - 1} * n * k / (k + 1)) << k << " " << levels;
      // In addition to g(n) = k·log n: the input, which stays, and two of the chain's gradients.
      EXPECT_EQ(outcome->live_peak / 1000, k * levels + 3) << k << " " << levels;
    }
  }
}

TEST(RecursionTest, AResidualNetworkNeedsLessEachLevel) {
  const absl::StatusOr<Network> network = ResNet({.stages = {3, 40, 60, 3}, .batch = 2, .image = 64});
  ASSERT_TRUE(network.ok());
  TrainingOptions options;
  options.weights = false;
  const absl::StatusOr<Graph> graph = TrainingGraph(*network, options);
  ASSERT_TRUE(graph.ok());
  const Values values = ValuesOf(*graph);
  Bytes before = INT64_MAX;
  Nanoseconds time = TotalCost(*graph);
  for (int levels : {1, 2, 3, 4}) {
    const absl::StatusOr<Schedule> schedule =
        ScheduleByMirror(*graph, values, RecursivePlan(*graph, values, 2, levels));
    ASSERT_TRUE(schedule.ok());
    EXPECT_EQ(Verify(*graph, *schedule), "");
    const absl::StatusOr<Outcome> outcome = Simulate(*graph, *schedule);
    EXPECT_LT(outcome->live_peak, before) << levels;
    EXPECT_GT(outcome->time, time) << levels;
    before = outcome->live_peak;
    time = outcome->time;
  }
}

}  // namespace
}  // namespace hotpack::remat
