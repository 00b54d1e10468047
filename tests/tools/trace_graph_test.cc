// Recordings with launches as graphs.
#include "tools/remat/trace_graph.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "remat/core/schedule_builder.h"
#include "remat/core/simulator.h"
#include "remat/core/verifier.h"

namespace hotpack {
namespace {

using remat::Graph;
using remat::StorageId;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Writes a recording by hand.
class Recording {
 public:
  uint64_t Allocate(uint64_t bytes) {
    file_.trace.events.push_back({.kind = EventKind::kAllocate, .id = next_, .bytes = bytes});
    return next_++;
  }
  void Release(uint64_t id) { file_.trace.events.push_back({.kind = EventKind::kRelease, .id = id, .bytes = 1}); }
  void Mark() { file_.trace.events.push_back({.kind = EventKind::kMark}); }
  void Launch(const std::string& name, const std::vector<uint64_t>& blocks, uint64_t ns = 0) {
    file_.notes.names.push_back(name);
    time_ += 1000;
    hotpack::Launch launch;
    launch.position = file_.trace.events.size();
    launch.start_ns = ns > 0 ? time_ : 0;
    launch.end_ns = ns > 0 ? time_ + ns : 0;
    launch.first_block = file_.notes.launch_blocks.size();
    launch.blocks = static_cast<uint32_t>(blocks.size());
    launch.name = static_cast<NameOrdinal>(file_.notes.names.size() - 1);
    file_.notes.launches.push_back(launch);
    file_.notes.launch_blocks.insert(file_.notes.launch_blocks.end(), blocks.begin(), blocks.end());
  }
  TraceFile& file() { return file_; }

 private:
  TraceFile file_;
  uint64_t next_ = 0, time_ = 0;
};

const remat::Storage& StorageOf(const Graph& graph, const std::string& name) {
  for (const remat::Storage& storage : graph.storages) {
    if (storage.name == name) return storage;
  }
  ADD_FAILURE() << "no " << name;
  return graph.storages.front();
}

TEST(TraceGraphTest, OneIteration) {
  Recording recording;
  const uint64_t weight = recording.Allocate(4000), hidden = recording.Allocate(64);
  uint64_t last = 0;
  for (int step = 0; step < 3; ++step) {
    recording.Mark();
    const uint64_t x = recording.Allocate(1000);
    if (step > 0) recording.Release(last);
    recording.Launch("fill", {x}, 5);
    const uint64_t scratch = recording.Allocate(512);
    const uint64_t y = recording.Allocate(2000);
    recording.Launch("multiply", {x, weight, y, x}, 70);
    recording.Release(scratch);
    recording.Launch("relu", {y}, 0);
    recording.Release(x);
    last = y;
  }
  recording.Mark();
  recording.Allocate(8);
  static_cast<void>(hidden);
  const absl::StatusOr<Graph> graph = GraphFromTrace(recording.file(), "job.trace");
  ASSERT_TRUE(graph.ok()) << graph.status();
  // The last step: block 8 is x, 9 the scratch, 10 y; y of the step before is 7, and goes before the first launch.
  ASSERT_EQ(graph->operators.size(), 3u);
  ASSERT_EQ(graph->storages.size(), 3u);
  EXPECT_EQ(graph->storages[0].name, "block 0");
  EXPECT_EQ(StorageOf(*graph, "block 0").bytes, 4000);
  EXPECT_TRUE(StorageOf(*graph, "block 0").given && StorageOf(*graph, "block 0").kept);
  EXPECT_FALSE(StorageOf(*graph, "block 8").given || StorageOf(*graph, "block 8").kept);
  EXPECT_TRUE(!StorageOf(*graph, "block 10").given && StorageOf(*graph, "block 10").kept);
  EXPECT_THAT(graph->released_after, ElementsAre(remat::kNever, 2, remat::kNever));
  const std::vector<remat::Operator>& ops = graph->operators;
  EXPECT_EQ(ops[0].name, "fill");
  EXPECT_THAT(ops[0].writes, ElementsAre(1));
  EXPECT_THAT(ops[0].updates, IsEmpty());
  EXPECT_THAT(ops[1].writes, ElementsAre(2));
  EXPECT_THAT(ops[1].updates, ElementsAre(0, 1));
  EXPECT_THAT(ops[2].updates, ElementsAre(2));
  for (const remat::Operator& op : ops) EXPECT_TRUE(op.once && op.reads.empty());
  EXPECT_EQ(ops[0].cost, 5);
  EXPECT_EQ(ops[1].cost, 70);
  EXPECT_EQ(ops[2].cost, 2);  // 2000 bytes at 1000 a ns
  // Blocks that nothing names stay: the hidden one always, the scratch while it lives.
  EXPECT_EQ(ops[0].workspace, 64);
  EXPECT_EQ(ops[1].workspace, 64 + 512);
  EXPECT_EQ(ops[2].workspace, 64);
}

TEST(TraceGraphTest, AGraphsLaunchUsesEverything) {
  Recording recording;
  const uint64_t a = recording.Allocate(100);
  recording.Launch("fill", {a});
  const uint64_t b = recording.Allocate(100);
  recording.Launch("graph", {});
  recording.Launch("use", {b});
  recording.Release(a);
  recording.Release(b);
  const absl::StatusOr<Graph> graph = GraphFromTrace(recording.file(), "t");
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_EQ(graph->operators.size(), 3u);
  EXPECT_THAT(graph->operators[1].updates, ElementsAre(0));
  EXPECT_THAT(graph->operators[1].writes, ElementsAre(1));
  EXPECT_THAT(graph->operators[2].updates, ElementsAre(1));
  EXPECT_THAT(graph->released_after, ElementsAre(2, 2));
}

// Results of the forward pass go to the host and come back; nothing runs twice.
TEST(TraceGraphTest, PlansCopyAndNeverComputeAgain) {
  Recording recording;
  std::vector<uint64_t> saved;
  const uint64_t weight = recording.Allocate(1000);
  for (int layer = 0; layer < 12; ++layer) {
    saved.push_back(recording.Allocate(100'000));
    recording.Launch("forward",
                     layer == 0 ? std::vector<uint64_t>{weight, saved[0]}
                                : std::vector<uint64_t>{weight, saved.end()[-2], saved.back()},
                     50'000);
  }
  while (!saved.empty()) {
    recording.Launch("backward", {weight, saved.back()}, 100'000);
    recording.Release(saved.back());
    saved.pop_back();
  }
  const absl::StatusOr<Graph> graph = GraphFromTrace(recording.file(), "t");
  ASSERT_TRUE(graph.ok()) << graph.status();
  const remat::Values values = ValuesOf(*graph);
  const remat::Outcome whole = *Simulate(*graph, Baseline(*graph, remat::Release::kAsTheProgram));
  EXPECT_EQ(whole.live_peak, 1'201'000);
  std::vector<remat::GapAction> ways(values.gaps.size(), remat::GapAction::kRecompute);
  const remat::Schedule again = BuildSchedule(*graph, values, ways).schedule;
  EXPECT_EQ(Verify(*graph, again), "");
  EXPECT_EQ(Simulate(*graph, again)->live_peak, whole.live_peak);
  for (size_t g = 0; g < ways.size(); ++g) {
    ways[g] = values.gaps[g].before > values.gaps[g].after + 4 ? remat::GapAction::kOffload : remat::GapAction::kKeep;
  }
  const remat::Schedule schedule = BuildSchedule(*graph, values, ways).schedule;
  EXPECT_EQ(Verify(*graph, schedule), "");
  const remat::Outcome outcome = *Simulate(*graph, schedule);
  EXPECT_LT(outcome.live_peak, whole.live_peak / 2);
  EXPECT_EQ(outcome.runs_again, 0);
  EXPECT_GT(outcome.copies, 0);
}

TEST(TraceGraphTest, Refusals) {
  const auto message = [](Recording& recording) {
    return std::string(GraphFromTrace(recording.file(), "t").status().message());
  };
  Recording recording;
  const uint64_t block = recording.Allocate(100);
  EXPECT_EQ(message(recording), "t: the recording has no launches (hotpack run --trace FILE --launches)");
  recording.Launch("hidden", {});
  EXPECT_EQ(message(recording), "t: no launch of the recording names a block (that takes a driver of CUDA 12.4)");
  recording.Launch("fill", {block});
  EXPECT_TRUE(GraphFromTrace(recording.file(), "t").ok());
  for (int step = 0; step < 2; ++step) {  // the iteration comes after all launches
    recording.Mark();
    recording.Release(recording.Allocate(200));
  }
  recording.Mark();
  recording.Allocate(8);
  EXPECT_EQ(message(recording), "t: no launch lies in the recording's iteration");
}

}  // namespace
}  // namespace hotpack
