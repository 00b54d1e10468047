// All policies: invariants of any allocator, on random requests and on recordings.
#include "tools/compare/peers.h"

#include <map>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "packer/bounds.h"
#include "profiler/event_csv.h"
#include "profiler/trace_file.h"
#include "tests/packer/random_instance.h"
#include "tests/packer/shared_data.h"
#include "tests/tools/compare/policy_player.h"
#include "tools/compare/engine_replay.h"
#include "tools/compare/recording.h"
#include "tools/recording/trace_facts.h"
#include "tools/replay/repeat_step.h"

namespace hotpack {
namespace {

using testing::kKiB;
using testing::kMiB;
using testing::PolicyPlayer;

std::unique_ptr<PeerPolicy> MakeBestFit(ModelDevice* device) { return MakeOneArena(device, true); }
std::unique_ptr<PeerPolicy> MakeFirstFit(ModelDevice* device) { return MakeOneArena(device, false); }
constexpr PolicyPlayer::Maker kMakers[] = {MakeSingleAllocations, MakeChainerPool, MakePyTorch,
                                           MakePyTorchExpandable, MakeBestFit,     MakeFirstFit};

uint64_t RandomSize(std::mt19937_64* random) {
  switch ((*random)() % 4) {
    case 0:
      return 1 + (*random)() % 4096;
    case 1:
      return 1 + (*random)() % (2 * kMiB);
    case 2:
      return 1 + (*random)() % (12 * kMiB);
    default:
      return 512 * (1 + (*random)() % 8) * ((*random)() % 2 == 0 ? 1 : 8192);
  }
}

// Live blocks by address, to see overlaps.
class Ledger {
 public:
  void Add(uint64_t address, uint64_t size) {
    auto next = blocks_.lower_bound(address);
    ASSERT_TRUE(next == blocks_.end() || next->first >= address + size) << "overlaps the next block";
    ASSERT_TRUE(next == blocks_.begin() || std::prev(next)->first + std::prev(next)->second <= address)
        << "overlaps the block before";
    blocks_[address] = size;
    live_ += size;
  }
  void Remove(uint64_t address) {
    live_ -= blocks_.at(address);
    blocks_.erase(address);
  }
  uint64_t live() const { return live_; }

 private:
  std::map<uint64_t, uint64_t> blocks_;
  uint64_t live_ = 0;
};

TEST(PeerPolicyTest, BlocksNeverOverlapAndTheDeviceHoldsThemAll) {
  std::mt19937_64 random(testing::TestSeed());
  for (int run = 0; run < testing::Runs(60); ++run) {
    const uint64_t capacity = run % 2 == 0 ? 0 : (32 + random() % 300) * kMiB;
    const uint32_t streams = 1 + random() % 3;
    for (PolicyPlayer::Maker make : kMakers) {
      PolicyPlayer player(make, capacity);
      Ledger ledger;
      std::vector<uint32_t> live;
      uint64_t failures = 0;
      for (int step = 0; step < 600; ++step) {
        if (!live.empty() && random() % 100 < (step < 300 ? 45u : 55u)) {
          const size_t chosen = random() % live.size();
          ledger.Remove(player.At(live[chosen]));
          player.Give(live[chosen]);
          live[chosen] = live.back();
          live.pop_back();
        } else {
          const uint64_t bytes = RandomSize(&random);
          const uint32_t request = player.Ask(bytes, static_cast<uint32_t>(random() % streams));
          if (request == PolicyPlayer::kFailed) {
            ++failures;
            continue;
          }
          ledger.Add(player.At(request), (bytes + 511) / 512 * 512);
          if (HasFatalFailure()) return;
          live.push_back(request);
        }
        ASSERT_GE(player.device().held(), ledger.live());
        ASSERT_LE(player.device().held(), capacity > 0 ? capacity : UINT64_MAX);
      }
      EXPECT_TRUE(capacity > 0 || failures == 0);
    }
  }
}

// A request fails only when giving everything back would not help either: then the same request of an empty device
// fits.
TEST(PeerPolicyTest, WhatIsCachedIsNoReasonToFail) {
  for (PolicyPlayer::Maker make : {MakeSingleAllocations, MakeChainerPool, MakePyTorch, MakePyTorchExpandable}) {
    PolicyPlayer player(make, 100 * kMiB);
    for (uint64_t bytes : {40 * kMiB, 3 * kMiB, kMiB / 2, 38 * kMiB}) player.Give(player.Ask(bytes, bytes % 3));
    EXPECT_NE(player.Ask(100 * kMiB), PolicyPlayer::kFailed);
  }
}

Trace Parse(const std::string& rows) {
  absl::StatusOr<Trace> trace = ParseEventCsv("event,id,bytes\n" + rows, "f");
  EXPECT_TRUE(trace.ok()) << trace.status();
  return trace.ok() ? *std::move(trace) : Trace{};
}

TEST(SimulatePeerTest, NamesAndTitles) {
  const Trace trace = Parse("alloc,1,1000\nfree,1,\n");
  for (const std::string& name : PeerNames()) {
    const PeerResult result = SimulatePeer(name, trace);
    EXPECT_EQ(result.name, name);
    EXPECT_NE(result.title, "");
    EXPECT_GE(result.reserved_peak, 1024u);
    EXPECT_EQ(result.reserved_steady, result.reserved_peak) << "there is no iteration";
    EXPECT_GE(result.device_calls, 1u);
  }
  EXPECT_EQ(SimulatePeer("nobody", trace).title, "");
}

TEST(SimulatePeerTest, AnEmptyRecording) {
  for (const std::string& name : PeerNames()) {
    const PeerResult result = SimulatePeer(name, Trace{}, {kMiB});
    EXPECT_EQ(result.reserved_peak, 0u);
    EXPECT_FALSE(result.out_of_memory);
  }
}

// 40 MiB during the set-up, then iterations with 10 MiB at most, in addition to 2 MiB that stay.
TEST(SimulatePeerTest, TheLastIterationByItself) {
  const Trace trace = Parse(
      "alloc,9,2097152\nalloc,8,41943040\nfree,8,\n"
      "mark,1,\nalloc,1,10485760\nfree,1,\nmark,2,\nalloc,1,10485760\nfree,1,\nmark,3,\n");
  const PeerResult single = SimulatePeer("cudamalloc", trace);
  EXPECT_EQ(single.reserved_peak, 42 * kMiB);
  EXPECT_EQ(single.reserved_steady, 12 * kMiB);
  EXPECT_EQ(SimulatePeer("chainer", trace).reserved_steady, 42 * kMiB);  // it keeps its memory
  for (const char* name : {"tflite", "xla"}) {
    const PeerResult offline = SimulatePeer(name, trace);
    EXPECT_TRUE(offline.offline);
    EXPECT_EQ(offline.reserved_peak, 42 * kMiB);
    EXPECT_EQ(offline.reserved_steady, 12 * kMiB);
  }
}

TEST(SimulatePeerTest, ACapacityFailsAtARequest) {
  const Trace trace = Parse("alloc,1,1048576\nalloc,2,4194304\nalloc,3,1048576\n");
  const PeerResult best_fit = SimulatePeer("best-fit", trace, {5 * kMiB});
  EXPECT_TRUE(best_fit.out_of_memory);
  EXPECT_EQ(best_fit.failed_request, 2u);
  EXPECT_EQ(best_fit.failed_bytes, kMiB);
  EXPECT_EQ(best_fit.reserved_peak, 5 * kMiB);
  const PeerResult pytorch = SimulatePeer("pytorch", trace, {5 * kMiB});
  EXPECT_EQ(pytorch.failed_request, 1u);
  EXPECT_TRUE(SimulatePeer("xla", trace, {5 * kMiB}).out_of_memory);
  for (const std::string& name : PeerNames()) {
    EXPECT_FALSE(SimulatePeer(name, trace, {22 * kMiB}).out_of_memory) << name;
  }
}

// Of marked iterations that differ it is not the last one that counts, but the one in which most is live.
TEST(PeerRecordingTest, TheWindowIsTheIterationWithTheHighestLiveLoad) {
  const PeerRecording recording = TakeRecording(Parse(
      "mark,0,\nalloc,1,1024\nfree,1,\nmark,1,\nalloc,2,9216\nfree,2,\nmark,2,\nalloc,3,2048\nfree,3,\nmark,3,\n"));
  ASSERT_TRUE(recording.hot.has_value());
  EXPECT_TRUE(recording.marked);
  EXPECT_EQ(recording.events[recording.window_begin].bytes, 9216u);
  EXPECT_EQ(LivePeakInWindow(recording, false), 9216u);
}

TEST(PeerRecordingTest, TheWindowIsTheLastIterationThatIsFound) {
  std::string rows = "alloc,9,512\n";
  for (int i = 0; i < 20; ++i) rows += "alloc,1,4096\nalloc,2,512\nfree,1,\nfree,2,\n";
  const PeerRecording recording = TakeRecording(Parse(rows));
  ASSERT_TRUE(recording.hot.has_value());
  EXPECT_EQ(recording.requests, 41u);
  EXPECT_EQ(recording.window_end, recording.events.size());
  EXPECT_EQ(recording.planned[0], 0);
  EXPECT_EQ(recording.planned[40], 1);
  EXPECT_EQ(LivePeakInWindow(recording, false), 5120u);
  EXPECT_EQ(LivePeakInWindow(recording, true), 512u);
}

TEST(PeerRecordingTest, InterruptedRequestsAreBesideThePlan) {
  const Trace trace = [] {
    Trace made =
        Parse("mark,0,\nalloc,1,1024\nalloc,2,5120\nfree,2,\nfree,1,\nmark,1,\nalloc,1,8192\nfree,1,\nmark,2,\n");
    Event event;
    event.kind = EventKind::kInterrupt;
    made.events.insert(made.events.begin() + 2, event);
    event.kind = EventKind::kResume;
    made.events.insert(made.events.begin() + 5, event);
    return made;
  }();
  const PeerRecording recording = TakeRecording(trace);
  EXPECT_EQ(recording.requests, 3u);
  EXPECT_EQ(recording.planned[1], 0);
  EXPECT_EQ(recording.planned[2], 1);
  EXPECT_EQ(recording.events[recording.window_begin].request, 2u);
}

// They take no memory anywhere. The window still begins and ends with a request.
TEST(PeerRecordingTest, RequestsOfNoBytesAreLeftOut) {
  Trace trace = Parse(
      "alloc,9,512\nmark,0,\nalloc,1,1024\nfree,1,\nmark,1,\nfree,9,\nalloc,2,2048\nmark,2,\nfree,2,\nalloc,3,512\n");
  Event nothing = {.kind = EventKind::kAllocate, .id = 100};
  for (const int at : {9, 5}) {  // before the first releases of the window and of what comes after it
    trace.events.insert(trace.events.begin() + at - 1, nothing);
    ++nothing.id;
  }
  const PeerRecording recording = TakeRecording(trace);
  ASSERT_TRUE(recording.hot.has_value());
  EXPECT_EQ(recording.requests, 4u);
  ASSERT_LT(recording.window_end, recording.events.size());
  EXPECT_EQ(recording.events[recording.window_begin].bytes, 2048u);
  EXPECT_EQ(recording.events[recording.window_end].bytes, 512u);
  for (const std::string& name : PeerNames()) {
    EXPECT_FALSE(SimulatePeer(name, trace, {64 * kMiB}).out_of_memory) << name;
    EXPECT_GE(SimulatePeer(name, trace).reserved_steady, 1024u) << name;
  }
  EXPECT_GT(ReplayOnEngine(trace, recording, 0).reserved_window, 0u);
}

// Large handles cost hardly any memory, and save most calls: a recorded step of PyTorch as it is, and with the sizes of
// a device of 80 GB.
TEST(ReplayOnEngine, LargeHandlesHoldHardlyMore) {
  const auto file = LoadTrace(std::string(HOTPACK_SOURCE_DIR) + "/tests/data/resnet50.trace");
  ASSERT_TRUE(file.ok()) << file.status();
  for (const uint64_t scale : {1, 16, 64}) {
    SCOPED_TRACE(std::to_string(scale) + " times the recorded sizes");
    Trace trace = RepeatSteadyStep(file->trace, 6);
    for (Event& event : trace.events) event.bytes *= scale;
    const PeerRecording recording = TakeRecording(trace);
    const EngineReplay single = ReplayOnEngine(trace, recording, 0, {0});
    const EngineReplay large = ReplayOnEngine(trace, recording, 0);
    const double most = scale == 1 ? 1.005 : 1.01;
    EXPECT_LE(static_cast<double>(large.reserved_peak), most * static_cast<double>(single.reserved_peak));
    EXPECT_LE(static_cast<double>(large.reserved_steady), most * static_cast<double>(single.reserved_steady));
    EXPECT_GT(single.reserved_steady, 0u);
    EXPECT_LE(large.creates, single.creates);
    if (scale == 64) {
      EXPECT_GT(single.creates, 20'000u);
      EXPECT_LT(large.creates, 5'000u);
    }
  }
}

// Invariants of each peer, for any recording.
void ExpectPlausible(const Trace& trace, const std::string& name) {
  const TraceFacts facts = CountFacts(trace);
  const PeerRecording recording = TakeRecording(trace);
  const uint64_t live_steady = LivePeakInWindow(recording, false);
  std::map<std::string, PeerResult> results;
  for (const std::string& peer : PeerNames()) {
    SCOPED_TRACE(name + ", " + peer);
    const PeerResult result = results[peer] = SimulatePeer(peer, trace);
    EXPECT_GE(result.reserved_peak, facts.live_peak);
    EXPECT_GE(result.reserved_steady, live_steady);
    if (result.offline) continue;
    EXPECT_LE(result.reserved_steady, result.reserved_peak);
    // With the memory that it needed it fits. With less than the live peak it does not.
    EXPECT_FALSE(SimulatePeer(peer, trace, {result.reserved_peak}).out_of_memory);
    EXPECT_TRUE(SimulatePeer(peer, trace, {facts.live_peak - 1}).out_of_memory);
  }
  EXPECT_EQ(results["cudamalloc"].reserved_peak, facts.live_peak);
  EXPECT_EQ(results["cudamalloc"].device_calls, facts.requests + facts.releases);
  // A pool takes only the missing memory from the device, PyTorch more. Both make fewer calls than there are requests.
  EXPECT_LT(results["chainer"].device_calls, facts.requests);
  EXPECT_LT(results["pytorch"].device_calls, results["chainer"].device_calls);
  EXPECT_EQ(results["pytorch"].reserved_peak % (2 * kMiB), 0u);
}

TEST(PeersOnRecordingsTest, OwnSamples) {
  for (const char* name : {"mlp-adam.csv", "cnn-carried.csv", "lstm.csv"}) {
    absl::StatusOr<TraceFile> file = LoadTrace(std::string(HOTPACK_SOURCE_DIR "/tests/data/") + name);
    ASSERT_TRUE(file.ok()) << file.status();
    ExpectPlausible(file->trace, name);
  }
}

TEST(PeersOnRecordingsTest, SharedTraces) {
  const std::vector<std::string> paths = CsvFilesIn(SharedFolder("traces"));
  if (paths.empty()) GTEST_SKIP() << "no shared traces (set HOTPACK_SHARED)";
  for (const std::string& path : paths) {
    absl::StatusOr<TraceFile> file = LoadTrace(path);
    ASSERT_TRUE(file.ok()) << file.status();
    ExpectPlausible(file->trace, path);
  }
}

TEST(RepeatStepTest, TheSteadyStepIsPlayedAgain) {
  absl::StatusOr<TraceFile> file = LoadTrace(HOTPACK_SOURCE_DIR "/tests/data/cnn-carried.csv");
  ASSERT_TRUE(file.ok()) << file.status();
  const std::vector<uint64_t> before = MarkedIterations(file->trace);
  const Trace longer = RepeatSteadyStep(file->trace, 3);
  const std::vector<uint64_t> after = MarkedIterations(longer);
  ASSERT_EQ(after.size(), before.size() + 3);
  EXPECT_EQ(after.back() - after[after.size() - 2], before.back() - before[before.size() - 2]);
  const TraceFacts facts = CountFacts(longer);
  EXPECT_EQ(facts.requests, CountFacts(file->trace).requests + 3 * (before.back() - before[before.size() - 2]));
  EXPECT_EQ(facts.live_end, 0u);
  EXPECT_EQ(facts.live_peak, CountFacts(file->trace).live_peak);
  EXPECT_EQ(RepeatSteadyStep(file->trace, 0).events.size(), file->trace.events.size());
}

// Requests behind the last mark (an evaluation, say) are played behind the repetitions, and are no iteration.
TEST(RepeatStepTest, WhatComesBehindTheLastMarkIsNoIteration) {
  std::string rows;
  for (int i = 0; i < 3; ++i) rows += "mark,,\nalloc,1,1024\nalloc,2,512\nfree,1,\nfree,2,\n";
  const Trace longer = RepeatSteadyStep(Parse(rows + "mark,,\nalloc,3,1048576\nfree,3,\nalloc,4,4096\n"), 2);
  EXPECT_EQ(MarkedIterations(longer), (std::vector<uint64_t>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(CountFacts(longer).requests, 12u);
  EXPECT_EQ(LivePeakInWindow(TakeRecording(longer), false), 1536u);
}

}  // namespace
}  // namespace hotpack
