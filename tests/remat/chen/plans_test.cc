#include "remat/chen/plans.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "packer/pack.h"
#include "remat/core/verifier.h"
#include "remat/files/dtr_log.h"
#include "remat/networks/residual.h"
#include "remat/networks/training_graph.h"
#include "tests/remat/small_graphs.h"

namespace hotpack::remat {
namespace {

double GiB(Bytes bytes) { return static_cast<double>(bytes) / (int64_t{1} << 30); }

Network ThousandConvolutions() { return ResNet({.stages = *ResNetStages(1007), .batch = 32}).value(); }

TrainingOptions FeatureMapsAlone() {
  TrainingOptions options;
  options.weights = false;
  return options;
}

// What section 5.1's lines have to be when the sums of the feature maps are known: an independent simulation's 126.7,
// 46.0 and 28.7 GiB.
TEST(ChenPlansTest, LinesOfAThousandConvolutions) {
  Network network = ThousandConvolutions();
  const Bytes forward = FeatureMapBytes(network);
  Graph graph = *TrainingGraph(network, FeatureMapsAlone());
  std::vector<MemoryLine> lines = MemoryLines(graph, ValuesOf(graph));
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_NEAR(GiB(lines[0].bytes), 2 * GiB(forward), 0.01);
  for (size_t i = 1; i < lines.size(); ++i) EXPECT_LT(lines[i].bytes, lines[i - 1].bytes) << lines[i].name;
  EXPECT_LT(GiB(lines[4].bytes), 3.2);
  EXPECT_LT(static_cast<double>(lines[4].cost), 1.4 * static_cast<double>(lines[0].cost));
  // Additions that are not in place and whose gradients are declared to read their operands.
  for (Layer& layer : network.layers) {
    if (layer.kind != "sum") continue;
    layer.in_place.clear();
    layer.gradient_reads = layer.inputs;
  }
  graph = *TrainingGraph(network, FeatureMapsAlone());
  lines = MemoryLines(graph, ValuesOf(graph));
  EXPECT_NEAR(GiB(lines[0].bytes), 126.7, 0.02 * 126.7);
  EXPECT_NEAR(GiB(lines[2].bytes), 46.0, 0.02 * 46.0);
  EXPECT_NEAR(GiB(lines[3].bytes), 28.7, 0.02 * 28.7);
}

Bytes ArenaOf(const Graph& graph, const Schedule& schedule) {
  return Pack(ToInstance(Simulate(graph, schedule)->residencies), {.time_limit_ns = 100'000'000}).placement.height;
}

// A budget holds for the arena; more memory, no more time; a chain's recursion goes below the square root.
TEST(ChenPlansTest, ForABudget) {
  const Graph resnet = *TrainingGraph(*ResNet({.stages = {3, 4, 6, 3}, .batch = 64, .image = 64}), {});
  const Graph chain = Chain(256, 4096, 10);
  for (const Graph* graph : {&resnet, &chain}) {
    const Values values = ValuesOf(*graph);
    const Bytes whole = ArenaOf(*graph, *ScheduleByChen(*graph, values, INT64_MAX));
    Nanoseconds before = 0;
    int found = 0;
    Bytes least = 0;
    for (int part = 100; part >= 2; part -= 7) {
      const Bytes budget = whole * part / 100;
      const absl::StatusOr<Schedule> schedule = ScheduleByChen(*graph, values, budget);
      if (!schedule.ok()) {
        EXPECT_EQ(schedule.status().code(), absl::StatusCode::kResourceExhausted);
        continue;
      }
      ++found;
      least = budget;
      EXPECT_EQ(Verify(*graph, *schedule), "");
      EXPECT_LE(ArenaOf(*graph, *schedule), budget);
      const Nanoseconds time = Simulate(*graph, *schedule)->time;
      EXPECT_GE(time, before);
      before = time;
    }
    EXPECT_GE(found, 3);
    if (graph == &chain) {
      EXPECT_LE(least, whole / 10) << "16 + 16 of 256 are an eighth";
    }
    const absl::StatusOr<Schedule> none = ScheduleByChen(*graph, values, 1000);
    EXPECT_NE(none.status().message().find("the least found needs"), absl::string_view::npos);
  }
}

// Recorded steps: operators in place, summed gradients, no information on splitting points.
TEST(ChenPlansTest, RecordedSteps) {
  const char* shared = std::getenv("HOTPACK_SHARED");
  const std::filesystem::path folder =
      std::filesystem::path(shared != nullptr ? shared : HOTPACK_SOURCE_DIR "/../shared") / "dtr";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no logs: HOTPACK_SHARED names their folder";
  for (const char* file : {"unet-6.log", "resnet32-56.log", "transformer-10.log"}) {
    std::ostringstream text;
    text << std::ifstream(folder / file).rdbuf();
    const absl::StatusOr<Graph> graph = ParseDtrLog(text.str(), file);
    ASSERT_TRUE(graph.ok()) << graph.status();
    const Values values = ValuesOf(*graph);
    const Bytes whole = Simulate(*graph, Baseline(*graph))->live_peak;
    for (int percent : {90, 75, 60, 45}) {
      const absl::StatusOr<Schedule> schedule = ScheduleByChen(*graph, values, whole * percent / 100);
      if (!schedule.ok()) continue;
      EXPECT_EQ(Verify(*graph, *schedule), "") << file;
      EXPECT_LE(ArenaOf(*graph, *schedule), whole * percent / 100) << file;
      std::printf("%s, %d %% of its memory: %.4f of its time\n", file, percent,
                  static_cast<double>(Simulate(*graph, *schedule)->time) / static_cast<double>(TotalCost(*graph)));
    }
  }
}

TEST(ChenPlansTest, AnyGraph) {
  std::mt19937_64 random(3);
  int found = 0;
  for (int i = 0; i < 400; ++i) {
    const Graph graph = RandomGraph(random, 2 + i % 40);
    if (!Check(graph).ok()) continue;
    const Values values = ValuesOf(graph);
    const Bytes whole = Simulate(graph, Baseline(graph))->live_peak;
    for (Bytes budget :
         {Bytes{1} << 20, 2 * whole, whole + 512, whole}) {  // sizes are rounded up: the arena is more than the peak
      const absl::StatusOr<Schedule> schedule = ScheduleByChen(graph, values, budget);
      if (!schedule.ok()) continue;
      EXPECT_EQ(Verify(graph, *schedule), "");
      EXPECT_LE(ArenaOf(graph, *schedule), budget);
      ++found;
    }
  }
  EXPECT_GT(found, 500);
}

}  // namespace
}  // namespace hotpack::remat
