// Saved activations as a knapsack: the best choice, and plans within a budget.
#include "remat/exact/knapsack.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "remat/core/simulator.h"
#include "remat/core/verifier.h"
#include "tests/remat/small_graphs.h"

namespace hotpack::remat {
namespace {

// The most time that saved results of so many bytes can save, over all choices.
Nanoseconds LeastAgain(const Graph& graph, Bytes capacity) {
  std::vector<size_t> items;
  for (size_t i = 0; i < graph.operators.size(); ++i) {
    if (graph.operators[i].phase == Phase::kForward) items.push_back(i);
  }
  Nanoseconds best = INT64_MAX;
  for (size_t code = 0; code < size_t{1} << items.size(); ++code) {
    Bytes bytes = 0;
    Nanoseconds again = 0;
    for (size_t k = 0; k < items.size(); ++k) {
      const Operator& op = graph.operators[items[k]];
      if ((code >> k & 1) != 0) {
        bytes += graph.storages[static_cast<size_t>(op.writes[0])].bytes;
      } else {
        again += op.cost;
      }
    }
    if (bytes <= capacity) best = std::min(best, again);
  }
  return best;
}

TEST(KnapsackTest, SavesWhatSavesMost) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 40; ++i) {
    Graph graph = Chain(8);  // the results of all 8 layers are used behind
    Bytes all = 0;
    for (size_t layer = 1; layer <= 8; ++layer)
      all += graph.storages[layer].bytes = static_cast<Bytes>(1 + random() % 30);
    for (size_t layer = 0; layer < 8; ++layer)
      graph.operators[layer].cost = static_cast<Nanoseconds>(1 + random() % 50);
    const Values values = ValuesOf(graph);
    for (const double share : {0.0, 0.3, 0.6, 0.9, 1.0}) {
      const SavedResults saved = SaveResults(graph, values, share);
      EXPECT_EQ(saved.all, all);
      EXPECT_LE(static_cast<double>(saved.bytes), share * static_cast<double>(all));
      EXPECT_EQ(saved.time_again, LeastAgain(graph, static_cast<Bytes>(share * static_cast<double>(all))))
          << i << " " << share;
      const SavedResults greedy = SaveResults(graph, values, share, {.greedy = true});
      EXPECT_LE(static_cast<double>(greedy.bytes), share * static_cast<double>(all));
      EXPECT_GE(greedy.time_again, saved.time_again);
      EXPECT_EQ(Verify(graph, ScheduleOf(graph, values, saved)), "");
    }
  }
}

TEST(KnapsackTest, GreedilyByTimeForBytes) {
  Graph graph = Chain(3);
  graph.storages[2].bytes = 10;  // the second layer's: 10 ns for 10 bytes
  graph.operators[0].cost = 50;  // the first one's: 50 ns for 100 bytes
  const SavedResults saved = SaveResults(graph, ValuesOf(graph), 0.53, {.greedy = true});  // 111 bytes of 210
  EXPECT_EQ(saved.again, (std::vector<bool>{false, false, true, false, false, false, false}));
  EXPECT_EQ(saved.time_again, 10);
  EXPECT_EQ(SaveResults(graph, ValuesOf(graph), 0.1, {.greedy = true}).again[1], false);
}

TEST(KnapsackTest, WhatMayRunOnceOnlyIsSaved) {
  Graph graph = Chain(3);
  graph.operators[1].once = true;
  const SavedResults saved = SaveResults(graph, ValuesOf(graph), 0);
  EXPECT_EQ(saved.again, (std::vector<bool>{true, false, true, false, false, false, false}));
  EXPECT_EQ(saved.bytes, 100);
}

// With nothing saved all of the forward pass is there again at once: more than with some of it.
TEST(KnapsackTest, TheShareIsNotAMemory) {
  Graph graph = Chain(64);
  for (size_t layer = 7; layer < 64; layer += 8) graph.operators[layer].cost = 100;
  const Values values = ValuesOf(graph);
  std::vector<Bytes> peaks;
  for (const double share : {0.0, 0.05, 0.125, 1.0})
    peaks.push_back(Simulate(graph, ScheduleOf(graph, values, SaveResults(graph, values, share)))->live_peak);
  EXPECT_GT(peaks[0], peaks[2]);
  EXPECT_GT(peaks[3], peaks[2]);
}

TEST(KnapsackTest, PlansWithinTheBudget) {
  std::mt19937_64 random(8);
  int planned = 0, faster_than_least = 0;
  for (int i = 0; i < 150; ++i) {
    Graph graph = i % 2 == 0 ? Chain(3 + i % 20) : RandomGraph(random, 5 + i % 30);
    if (!Check(graph).ok()) continue;
    const Values values = ValuesOf(graph);
    const Bytes most = Simulate(graph, Baseline(graph))->live_peak;
    for (const int part : {100, 80, 60}) {
      for (const bool greedy : {false, true}) {
        const absl::StatusOr<Schedule> schedule =
            ScheduleByKnapsack(graph, values, most * part / 100, {.greedy = greedy});
        if (!schedule.ok()) {
          EXPECT_EQ(schedule.status().code(), absl::StatusCode::kResourceExhausted);
          continue;
        }
        EXPECT_EQ(Verify(graph, *schedule), "");
        const absl::StatusOr<Outcome> outcome = Simulate(graph, *schedule);
        ASSERT_TRUE(outcome.ok());
        EXPECT_LE(outcome->live_peak, most * part / 100);
        ++planned;
        const Schedule least = ScheduleOf(graph, values, SaveResults(graph, values, 0));
        faster_than_least += outcome->time < Simulate(graph, least)->time ? 1 : 0;
      }
    }
  }
  printf("%d plans, %d faster than with nothing saved\n", planned, faster_than_least);
  EXPECT_GT(planned, 200);
  EXPECT_GT(faster_than_least, 50);
}

}  // namespace
}  // namespace hotpack::remat
