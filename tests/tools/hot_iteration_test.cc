// The iterations of recordings, on the small networks of tests/data.
#include "tools/recording/hot_iteration.h"

#include <iterator>
#include <map>
#include <random>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "packer/bounds.h"
#include "profiler/event_csv.h"
#include "profiler/trace_file.h"
#include "tests/profiler/trace_samples.h"
#include "tools/recording/trace_facts.h"

namespace hotpack {
namespace {

using ::testing::ElementsAre;

TraceFile Load(const std::string& name) {
  absl::StatusOr<TraceFile> file = LoadTrace(HOTPACK_SOURCE_DIR "/tests/data/" + name);
  EXPECT_TRUE(file.ok()) << file.status();
  return file.ok() ? *std::move(file) : TraceFile{};
}

// Both ways find the same iteration: `first`, `last` are the requests of the first and the last marked one.
void ExpectIteration(const Trace& trace, uint64_t requests, uint64_t steps_equal) {
  std::optional<HotIteration> marked = MarkedIteration(trace);
  std::optional<HotIteration> detected = DetectedIteration(trace);
  ASSERT_TRUE(marked.has_value());
  ASSERT_TRUE(detected.has_value());
  EXPECT_EQ(marked->profile.period, requests);
  EXPECT_EQ(detected->profile.period, requests);
  EXPECT_GE(marked->period.run, requests * (steps_equal - 1));
  EXPECT_EQ(PeakUnits(marked->profile), PeakUnits(detected->profile));
}

TEST(HotIterationTest, Perceptron) {
  TraceFile file = Load("mlp-adam.csv");
  EXPECT_THAT(MarkedIterations(file.trace), ElementsAre(10u, 71u, 112u, 153u, 194u));
  ExpectIteration(file.trace, 41, 3);
}

TEST(HotIterationTest, CarriedGradients) {
  TraceFile file = Load("cnn-carried.csv");
  ExpectIteration(file.trace, 54, 3);
  // Nothing else is live where the gradients are released, so the cycle is turned to begin after them.
  EXPECT_EQ(MarkedIteration(file.trace)->profile.carried_blocks, 0u);
  EXPECT_EQ(CountFacts(file.trace).live_end / 512, 2174u);
}

TEST(HotIterationTest, TimeStepsAreNoIteration) { ExpectIteration(Load("lstm.csv").trace, 345, 3); }

TEST(HotIterationTest, TheTwoFormatsAgree) {
  TraceFile csv = Load("mlp-adam.csv"), binary = Load("mlp-adam.trace");
  EXPECT_EQ(binary.origin.program, "/usr/bin/mlp");
  EXPECT_EQ(binary.origin.process, 4711u);
  TraceFacts facts = CountFacts(binary.trace);
  EXPECT_EQ(facts.streams, 2u);
  EXPECT_EQ(facts.threads, 2u);
  EXPECT_GT(facts.duration_ns, 360'000u);
  for (Event& event : binary.trace.events) event.thread = 0, event.stream = 0, event.time_ns = 0;
  EXPECT_EQ(hotpack::testing::CommonPrefix(csv.trace, binary.trace), csv.trace.events.size());
  EXPECT_EQ(csv.trace.events.size(), binary.trace.events.size());
}

TEST(HotIterationTest, OneMarkedIterationIsEnough) {
  absl::StatusOr<Trace> trace = ParseEventCsv(
      "event,id,bytes\nalloc,0,999\nmark,s,\nalloc,1,512\nalloc,2,1024\nfree,1,\nalloc,3,512\nfree,2,\nfree,3,\nmark,e,"
      "\n",
      "f");
  ASSERT_TRUE(trace.ok());
  std::optional<HotIteration> marked = MarkedIteration(*trace);
  ASSERT_TRUE(marked.has_value());
  EXPECT_EQ(marked->profile.period, 3u);
  EXPECT_EQ(PeakUnits(marked->profile), 3u);
  EXPECT_FALSE(DetectedIteration(*trace).has_value());
}

TEST(HotIterationTest, APartAtTheEndThatDoesNotRepeat) {
  std::string rows = "event,id,bytes\n";
  int id = 0;
  auto block = [&](int bytes) {
    rows += "alloc," + std::to_string(id) + "," + std::to_string(bytes) + "\nfree," + std::to_string(id) + ",\n";
    ++id;
  };
  for (int i = 0; i < 20; ++i) {
    for (int size : {512, 4096, 1024, 512, 2048}) block(size);
  }
  for (int i = 0; i < 5; ++i) block(100'000 + 10'000 * i);
  absl::StatusOr<Trace> trace = ParseEventCsv(rows, "f");
  ASSERT_TRUE(trace.ok());
  EXPECT_FALSE(MarkedIteration(*trace).has_value());
  std::optional<HotIteration> detected = DetectedIteration(*trace);
  ASSERT_TRUE(detected.has_value());
  EXPECT_EQ(detected->profile.period, 5u);
}

// Training steps whose sizes vary, and after each some evaluation steps that are all alike: what repeats is the
// evaluation, and the most memory is in the training.
TEST(LargestIterationTest, WithoutMarksATrainingStepIsBeforeAnEvaluationThatRepeats) {
  std::string rows = "event,id,bytes\nalloc,0,65536\n";
  int id = 1;
  const auto step = [&](int count, int bytes) {
    const int first = id;
    for (int i = 0; i < count; ++i)
      rows += "alloc," + std::to_string(id++) + "," + std::to_string(bytes + 512 * (i % 7)) + "\n";
    for (int i = first; i < id; ++i) rows += "free," + std::to_string(i) + ",\n";
  };
  for (int k = 0; k < 6; ++k) {
    step(24, 4096 * (20 + k * 7 % 5));
    for (int i = 0; i < 20; ++i) step(16, 8192);
  }
  absl::StatusOr<Trace> trace = ParseEventCsv(rows, "f");
  ASSERT_TRUE(trace.ok());
  const std::optional<HotIteration> detected = DetectedIteration(*trace);
  ASSERT_TRUE(detected.has_value());
  EXPECT_EQ(detected->period.length, 16u);
  const std::optional<LargestIteration> largest = FindLargestIteration(*trace);
  ASSERT_TRUE(largest.has_value());
  EXPECT_FALSE(largest->marked);
  EXPECT_EQ(largest->hot.period.length, 24u);
  // 24 blocks, the smallest of 24 * 4096 bytes: the second step of six.
  EXPECT_EQ(PeakUnits(largest->hot.profile) * 512, CountFacts(*trace).live_peak - 65536);
}

TEST(LargestIterationTest, WhereEverythingRepeatsItIsTheIterationThatIsFound) {
  for (const char* name : {"mlp-adam.csv", "lstm.csv"}) {
    TraceFile file = Load(name);
    std::erase_if(file.trace.events, [](const Event& event) { return event.kind == EventKind::kMark; });
    const std::optional<HotIteration> detected = DetectedIteration(file.trace);
    const std::optional<LargestIteration> largest = FindLargestIteration(file.trace);
    ASSERT_TRUE(detected.has_value() && largest.has_value()) << name;
    EXPECT_EQ(largest->hot.period.length, detected->period.length) << name;
  }
}

TEST(LargestIterationTest, StretchesOfEqualLengthByChanceAreNoIteration) {
  std::mt19937 random(7);
  std::string rows = "event,id,bytes\n";
  std::multimap<int, int> releases;  // before which request → the block
  for (int i = 0; i < 20000; ++i) {
    for (auto due = releases.begin(); due != releases.end() && due->first <= i; due = releases.erase(due)) {
      rows += "free," + std::to_string(due->second) + ",\n";
    }
    rows += "alloc," + std::to_string(i) + "," + std::to_string(512 * (1 + random() % 4000)) + "\n";
    const int mean[] = {3, 30, 3000};
    releases.emplace(i + 1 + static_cast<int>(std::exponential_distribution(1.0 / mean[random() % 3])(random)), i);
  }
  absl::StatusOr<Trace> trace = ParseEventCsv(rows, "f");
  ASSERT_TRUE(trace.ok());
  EXPECT_FALSE(FindLargestIteration(*trace).has_value());
}

TEST(LargestIterationTest, NothingRepeatsAndNothingIsMarked) {
  absl::StatusOr<Trace> trace = ParseEventCsv("event,id,bytes\nalloc,1,1000\nalloc,2,5000\nfree,1,\n", "f");
  ASSERT_TRUE(trace.ok());
  EXPECT_FALSE(FindLargestIteration(*trace).has_value());
}

TEST(WholeRecordingTest, BlocksLiveFromAllocationToRelease) {
  absl::StatusOr<Trace> trace =
      ParseEventCsv("event,id,bytes\nalloc,5,100\nalloc,6,513\nfree,5,\nmark,s,\nalloc,5,512\n", "f");
  ASSERT_TRUE(trace.ok());
  Instance instance = WholeRecording(*trace);
  ASSERT_EQ(instance.blocks.size(), 3u);
  auto check = [&instance](size_t i, Bytes size, Clock begin, Clock end) {
    EXPECT_EQ(instance.blocks[i].size, size);
    EXPECT_EQ(instance.blocks[i].residency[0].begin, begin);
    EXPECT_EQ(instance.blocks[i].residency[0].end, end);
  };
  check(0, 512, 0, 2);
  check(1, 1024, 1, 4);
  check(2, 512, 3, 4);
  EXPECT_EQ(MaxLoad(instance), 1536);
}

}  // namespace
}  // namespace hotpack
