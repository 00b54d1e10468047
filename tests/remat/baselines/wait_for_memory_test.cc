#include "remat/baselines/wait_for_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "remat/core/schedule_builder.h"
#include "remat/core/simulator.h"
#include "remat/core/verifier.h"
#include "tests/remat/small_graphs.h"

namespace hotpack::remat {
namespace {

// x1 is copied to the host, slowly, and should make room for x3.
TEST(WaitForMemoryTest, ADropWaitsForItsCopy) {
  const Graph graph = Chain(4);
  const Values values = ValuesOf(graph);
  const Machine machine = {.bytes_per_ns_to_host = 2, .bytes_per_ns_to_device = 2};  // 50 ns for each storage
  std::vector<GapAction> ways(values.gaps.size(), GapAction::kKeep);
  for (size_t g = 0; g < ways.size(); ++g) {
    if (values.values[static_cast<size_t>(values.gaps[g].value)].storage == 1 && values.gaps[g].after == 1)
      ways[g] = GapAction::kOffload;
  }
  const Schedule schedule = BuildSchedule(graph, values, ways, machine).schedule;
  const Outcome before = *Simulate(graph, schedule, machine);
  const Schedule waits = WaitForMemory(graph, schedule, before.live_peak - 100);
  const Outcome after = *Simulate(graph, waits, machine);
  EXPECT_EQ(Verify(graph, waits), "");
  EXPECT_EQ(after.live_peak, before.live_peak - 100);
  EXPECT_GT(after.time, before.time);
  // With memory enough nothing moves.
  const Schedule same = WaitForMemory(graph, schedule, before.live_peak);
  EXPECT_EQ(Simulate(graph, same, machine)->time, before.time);
}

// A copy that ends after the use for which it should be back is no reason to keep the memory.
TEST(WaitForMemoryTest, CopiesThatEndTooLateAreWaitedForToo) {
  const Graph graph = Chain(4);
  const Values values = ValuesOf(graph);
  const Machine slow = {.bytes_per_ns_to_host = 0.1, .bytes_per_ns_to_device = 0.1};
  std::vector<GapAction> ways(values.gaps.size(), GapAction::kKeep);
  for (size_t g = 0; g < ways.size(); ++g) {
    if (graph.operators[static_cast<size_t>(std::max(0, values.gaps[g].after))].phase == Phase::kForward)
      ways[g] = GapAction::kOffload;
  }
  const Schedule schedule = BuildSchedule(graph, values, ways, slow).schedule;
  const Bytes before = Simulate(graph, schedule, slow)->live_peak;
  const Schedule waits = WaitForMemory(graph, schedule, 300);
  EXPECT_EQ(Verify(graph, waits), "");
  EXPECT_EQ(Simulate(graph, waits, slow)->live_peak, 300);
  EXPECT_GT(before, 400);
}

TEST(WaitForMemoryTest, NeverMoreMemoryAndTheSameContents) {
  std::mt19937_64 random(11);
  int lower = 0;
  for (int i = 0; i < 600; ++i) {
    const Graph graph = RandomGraph(random, 3 + i % 30);
    if (!Check(graph).ok()) continue;
    const Values values = ValuesOf(graph);
    const Machine machine = {.bytes_per_ns_to_host = i % 2 == 0 ? 1.0 : 20.0, .bytes_per_ns_to_device = 5};
    std::vector<GapAction> ways(values.gaps.size(), GapAction::kKeep);
    for (GapAction& way : ways)
      way = random() % 3 == 0 ? GapAction::kKeep : random() % 4 == 0 ? GapAction::kRecompute : GapAction::kOffload;
    const Schedule schedule = BuildSchedule(graph, values, ways, machine).schedule;
    const Bytes before = Simulate(graph, schedule, machine)->live_peak;
    const Schedule waits = WaitForMemory(graph, schedule, before * 7 / 10);
    ASSERT_EQ(Verify(graph, waits), "") << i;
    const absl::StatusOr<Outcome> after = Simulate(graph, waits, machine);
    ASSERT_TRUE(after.ok()) << i << ": " << after.status();
    EXPECT_LE(after->live_peak, before) << i;
    lower += after->live_peak < before ? 1 : 0;
  }
  EXPECT_GT(lower, 100);
}

}  // namespace
}  // namespace hotpack::remat
