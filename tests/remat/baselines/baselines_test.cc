#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <string>

#include "remat/baselines/memonger.h"
#include "remat/baselines/superneurons.h"
#include "remat/baselines/tflms.h"
#include "remat/core/schedule_builder.h"
#include "remat/core/verifier.h"
#include "remat/networks/generator.h"
#include "tests/remat/small_graphs.h"

namespace hotpack::remat {
namespace {

using Baseline = std::function<absl::StatusOr<Schedule>(const Graph&, const Values&, Bytes)>;

struct Named {
  const char* name;
  Baseline plan;
};
const Named kBaselines[] = {
    {"memonger",
     [](const Graph& graph, const Values& values, Bytes budget) { return ScheduleByMemonger(graph, values, budget); }},
    {"superneurons", [](const Graph& graph, const Values& values,
                        Bytes budget) { return ScheduleBySuperNeurons(graph, values, budget); }},
    {"tflms",
     [](const Graph& graph, const Values& values, Bytes budget) { return ScheduleByTflms(graph, values, budget); }},
};

Bytes PeakOf(const Graph& graph, const Values& values) {
  return Simulate(graph,
                  BuildSchedule(graph, values, std::vector<GapAction>(values.gaps.size(), GapAction::kKeep)).schedule)
      ->live_peak;
}

// True if there is a plan.
bool FitsAndComputes(const Named& baseline, const Graph& graph, Bytes budget) {
  const absl::StatusOr<Schedule> schedule = baseline.plan(graph, ValuesOf(graph), budget);
  if (!schedule.ok()) {
    EXPECT_EQ(schedule.status().code(), absl::StatusCode::kResourceExhausted) << schedule.status();
    return false;
  }
  EXPECT_EQ(Verify(graph, *schedule), "") << baseline.name;
  EXPECT_LE(Simulate(graph, *schedule)->live_peak, budget) << baseline.name;
  return true;
}

TEST(BaselinesTest, PlansOfDrawnGraphs) {
  std::mt19937_64 random(6);
  int planned[3] = {};
  for (int i = 0; i < 120; ++i) {
    const Graph graph = RandomGraph(random, 4 + i % 30);
    if (!Check(graph).ok()) continue;
    const Bytes budget = PeakOf(graph, ValuesOf(graph)) * (85 + i % 16) / 100;
    for (size_t b = 0; b < 3; ++b) planned[b] += FitsAndComputes(kBaselines[b], graph, budget) ? 1 : 0;
  }
  for (int count : planned) EXPECT_GT(count, 10);
}

TEST(BaselinesTest, PlansOfNetworks) {
  for (const std::string spec : {"resnet:29,batch=2,image=32", "unet:batch=1,image=64"}) {
    const absl::StatusOr<Graph> graph = Generate(spec);
    ASSERT_TRUE(graph.ok()) << graph.status();
    const Bytes peak = PeakOf(*graph, ValuesOf(*graph));
    for (const Named& baseline : kBaselines) {
      for (const int percent : {100, 90, 70}) FitsAndComputes(baseline, *graph, peak * percent / 100);
      EXPECT_TRUE(FitsAndComputes(baseline, *graph, peak)) << baseline.name;
    }
  }
}

TEST(BaselinesTest, TooLittleMemoryIsAnErrorWithTheLeast) {
  const Graph graph = Chain(9);
  for (const Named& baseline : kBaselines) {
    const absl::StatusOr<Schedule> schedule = baseline.plan(graph, ValuesOf(graph), 150);
    ASSERT_FALSE(schedule.ok()) << baseline.name;
    EXPECT_NE(schedule.status().message().find("the least found needs "), std::string::npos) << schedule.status();
  }
}

TEST(MemongerTest, SegmentsOfEqualNumbersOfOperators) {
  const Graph graph = Chain(12);
  const std::vector<bool> all = MemongerSegments(graph, 3, 3), first = MemongerSegments(graph, 3, 1);
  for (size_t i = 0; i < 12; ++i) {
    EXPECT_EQ(all[i], i % 4 != 3) << i;
    EXPECT_EQ(first[i], i < 3) << i;
  }
  for (size_t i = 12; i < graph.operators.size(); ++i) EXPECT_FALSE(all[i]) << i;
}

// Memory of a chain grows with the square root of its depth, and no operator runs more than once again.
TEST(MemongerTest, SquareRootOfTheDepth) {
  for (const int layers : {100, 400}) {
    const Graph graph = Chain(layers);
    const auto budget = static_cast<Bytes>(100 * (2 * std::sqrt(layers) + 6));
    const absl::StatusOr<Schedule> schedule = ScheduleByMemonger(graph, ValuesOf(graph), budget);
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    const Outcome outcome = *Simulate(graph, *schedule);
    EXPECT_LE(outcome.runs_again, layers);
    EXPECT_EQ(outcome.copies, 0);
  }
}

TEST(SuperNeuronsTest, HeavyResultsAreCopiedAndCheapOnesMadeAgain) {
  Graph graph = Chain(12, 1000);
  for (size_t i = 0; i < 12; i += 3) graph.operators[i].heavy = true;
  const Values values = ValuesOf(graph);
  const auto outcome = [&](SuperNeuronsMode mode, Bytes budget) {
    const Schedule schedule = ScheduleWithSuperNeurons(graph, values, mode, budget);
    EXPECT_EQ(Verify(graph, schedule), "");
    return *Simulate(graph, schedule);
  };
  const Bytes peak = PeakOf(graph, values);
  const Outcome recompute = outcome(SuperNeuronsMode::kRecompute, peak),
                swap = outcome(SuperNeuronsMode::kSwap, peak - 2000), both = outcome(SuperNeuronsMode::kBoth, 5000);
  EXPECT_EQ(recompute.copies, 0);
  EXPECT_EQ(recompute.runs_again, 7);  // all eight that are cheap, but for the last one, which is used at once
  EXPECT_EQ(swap.runs_again, 0);
  EXPECT_EQ(swap.copies, 2 * 2);  // two of the four, there and back
  EXPECT_EQ(swap.live_peak, peak - 2000);
  EXPECT_GT(both.runs_again, 0);
  EXPECT_GT(both.copies, 0);
  EXPECT_LT(both.live_peak, recompute.live_peak);
  // The least recently used goes first: x1.
  const Schedule schedule = ScheduleWithSuperNeurons(graph, values, SuperNeuronsMode::kSwap, peak - 1000);
  const auto copy = std::find_if(schedule.actions.begin(), schedule.actions.end(),
                                 [](const Action& action) { return action.kind == ActionKind::kOffload; });
  ASSERT_NE(copy, schedule.actions.end());
  EXPECT_EQ(copy->target, 1);
}

// Storages that do not exist yet, or are in use, cannot be copied to free memory.
TEST(SuperNeuronsTest, OnlyWhatIsThereGoes) {
  Graph graph = Chain(12, 1000);
  for (size_t i = 0; i < 12; i += 3) graph.operators[i].heavy = true;
  graph.operators[1].workspace = 100'000;  // reads x1, the first that could go
  const Schedule schedule = ScheduleWithSuperNeurons(graph, ValuesOf(graph), SuperNeuronsMode::kSwap, 50'000);
  EXPECT_EQ(Simulate(graph, schedule)->copies, 0);
}

TEST(TflmsTest, TheFirstTensorsBeyondTheThreshold) {
  const Graph graph = Chain(10);
  const Values values = ValuesOf(graph);
  // x1 to x9 are used by the next layer and by their gradients: x9 from operator 9 to 11, x1 from 1 to 19.
  EXPECT_EQ(TflmsCandidates(graph, values, 1), 9);
  EXPECT_EQ(TflmsCandidates(graph, values, 17), 1);
  EXPECT_EQ(TflmsCandidates(graph, values, 18), 0);
  for (int tensors = 0; tensors <= 9; ++tensors) {
    const Schedule schedule = ScheduleWithTflms(graph, values, {.tensors = tensors}, 300);
    EXPECT_EQ(Verify(graph, schedule), "");
    const Outcome outcome = *Simulate(graph, schedule);
    EXPECT_EQ(outcome.copies, 2 * tensors);
    EXPECT_EQ(outcome.runs_again, 0);
  }
}

// A copy back that begins earlier is waited for less.
TEST(TflmsTest, CopiesBackBeginSoManyOperatorsAhead) {
  const Graph graph = Chain(12, 1000, 100);  // a copy takes 84 ns
  const Values values = ValuesOf(graph);
  const Machine machine = {.bytes_per_ns_to_host = 12, .bytes_per_ns_to_device = 4};  // 250 ns back
  Nanoseconds before = INT64_MAX;
  for (const int ahead : {1, 2, 3}) {
    const Outcome outcome =
        *Simulate(graph, ScheduleWithTflms(graph, values, {.tensors = 1, .ahead = ahead}, INT64_MAX, machine), machine);
    EXPECT_LT(outcome.time, before) << ahead;
    before = outcome.time;
  }
  EXPECT_EQ(before, TotalCost(graph));
}

}  // namespace
}  // namespace hotpack::remat
