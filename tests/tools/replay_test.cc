// The parts of `hotpack replay`: cutting a recording into steps, and playing them on a device that keeps a log.
#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "profiler/event_csv.h"
#include "profiler/trace_file.h"
#include "tests/profiler/trace_samples.h"
#include "tools/replay/replay_player.h"
#include "tools/replay/replay_sizes.h"
#include "tools/replay/replay_steps.h"

namespace hotpack {
namespace {

using hotpack::testing::TestSeed;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

std::vector<std::string>* hook_log = nullptr;

// Records its calls: "+100" allocates 100 bytes, "-100" releases such a block. Blocks are distinguished by their order:
// the log of a release ends in #N, the block's ordinal.
class LogDevice : public ReplayDevice {
 public:
  std::string Allocate(uint64_t bytes, uint32_t stream, uint64_t* address) override {
    *address = ++count_ * 4096;
    live_.insert(*address);
    Add(absl::StrCat("+", bytes, stream != 0 ? absl::StrCat("@", stream) : ""));
    return fail_at == count_ ? "out of memory" : "";
  }
  std::string Release(const ReplayBlock& block, uint32_t stream) override {
    EXPECT_EQ(live_.erase(block.address), 1u) << "released twice";
    EXPECT_EQ(filled_.erase(block.address), touched) << "never filled";
    EXPECT_EQ(checked_.erase(block.address), touched) << "not checked";
    Add(absl::StrCat("-", block.bytes, "#", block.address / 4096 - 1, stream != 0 ? absl::StrCat("@", stream) : ""));
    return "";
  }
  std::string Fill(const ReplayBlock& block) override {
    EXPECT_TRUE(ids_.insert(block.id).second) << "an id is used twice";
    filled_.insert(block.address);
    return "";
  }
  std::string Check(const ReplayBlock& block) override {
    checked_.insert(block.address);
    return "";
  }
  std::string Synchronize() override { return ""; }
  uint64_t Mismatches() override { return 7; }
  void Add(const std::string& what) { log.push_back(what); }

  uint64_t fail_at = 0;
  size_t touched = 1;
  std::vector<std::string> log;
  size_t live() const { return live_.size(); }

 private:
  uint64_t count_ = 0;
  std::set<uint64_t> live_, filled_, checked_, ids_;
};

Trace FromCsv(const std::string& rows) {
  absl::StatusOr<Trace> trace = ParseEventCsv("event,id,bytes\n" + rows, "f");
  EXPECT_TRUE(trace.ok()) << trace.status();
  return *trace;
}

struct Played {
  PlayResult result;
  std::vector<std::string> log;
};

Played PlayTrace(const Trace& trace, const PlayOptions& options) {
  LogDevice device;
  device.touched = options.touch ? 1 : 0;
  hook_log = &device.log;
  ReplayHooks hooks;
  hooks.step = [] { hook_log->push_back("step"); };
  hooks.expect = [] { hook_log->push_back("expect"); };
  hooks.interrupt = [] { hook_log->push_back("interrupt"); };
  hooks.resume = [] { hook_log->push_back("resume"); };
  hooks.wait_plan = [](int timeout) { return hook_log->push_back("wait" + std::to_string(timeout)), 1; };
  RecordedSteps recorded = CutIntoSteps(trace);
  Player player(recorded, options, hooks, &device);
  Played played = {player.Play(), {}};
  EXPECT_EQ(device.live(), 0u) << "not everything was released";
  played.log = device.log;
  std::erase(played.log, "wait-1");
  return played;
}

constexpr char kCarried[] =  // block b of each step is released in the next one
    "alloc,1,9\n"            // before the first mark
    "mark,step,\nalloc,2,100\nalloc,3,200\nfree,2,\n"
    "mark,step,\nfree,3,\nalloc,4,100\nalloc,5,200\nfree,4,\n"
    "mark,end,\nfree,1,\n";

TEST(ReplayStepsTest, CutsAtMarks) {
  RecordedSteps recorded = CutIntoSteps(FromCsv(kCarried));
  EXPECT_THAT(recorded.requests, ElementsAre(1u, 2u, 2u, 0u));
  ASSERT_TRUE(recorded.steady.has_value());
  EXPECT_EQ(*recorded.steady, 2u);
  EXPECT_EQ(recorded.reach, 1u);
  const PlayedEvent& release = recorded.steps[2][0];
  EXPECT_EQ(release.kind, EventKind::kRelease);
  EXPECT_EQ(release.block.step, 1u);
  EXPECT_EQ(release.block.request, 1u);
}

TEST(ReplayStepsTest, NoSteadyStep) {
  auto steady = [](const char* rows) { return CutIntoSteps(FromCsv(rows)).steady.has_value(); };
  EXPECT_FALSE(steady("alloc,1,5\nfree,1,\n")) << "no marks";
  EXPECT_FALSE(steady("mark,step,\nalloc,1,5\nfree,1,\nmark,end,\n")) << "one step";
  EXPECT_FALSE(steady("mark,s,\nalloc,1,5\nmark,s,\nalloc,2,6\nmark,end,\n")) << "sizes differ";
  EXPECT_FALSE(steady("mark,s,\nalloc,1,5\nmark,s,\nalloc,2,5\nalloc,3,5\nmark,end,\n")) << "lengths differ";
  EXPECT_FALSE(steady("alloc,1,5\nmark,s,\nalloc,2,5\nmark,end,\n")) << "only one between marks";
  EXPECT_TRUE(steady("mark,s,\nalloc,1,5\nmark,s,\nalloc,2,5\nmark,s,\nmark,end,\n")) << "empty steps do not count";
}

TEST(PlayerTest, RepeatsCarriedBlocks) {
  Played played = PlayTrace(FromCsv(kCarried), {.repeat = 2});
  EXPECT_EQ(played.result.error, "");
  EXPECT_THAT(played.log, ElementsAre("+9",                                        //
                                      "step", "+100", "+200", "-100#1",            //
                                      "step", "-200#2", "+100", "+200", "-100#3",  //
                                      "step", "-200#4", "+100", "+200", "-100#5",  // repetitions
                                      "step", "-200#6", "+100", "+200", "-100#7",  //
                                      "step", "-9#0",                              // the rest of the recording
                                      "-200#8"));                                  // the rest
  EXPECT_EQ(played.result.requests, 9u);
  EXPECT_EQ(played.result.step_ns.size(), 4u);
  EXPECT_EQ(played.result.live_peak, 1536u);
  EXPECT_EQ(played.result.mismatches, 7u);
}

// The end of the recording releases the carried blocks: after repetitions those of the last one.
TEST(PlayerTest, TheRestReleasesTheLatestBlocks) {
  Played played =
      PlayTrace(FromCsv("mark,s,\nalloc,1,10\nmark,s,\nfree,1,\nalloc,2,10\nmark,end,\nfree,2,\nalloc,3,7\nfree,3,\n"),
                {.repeat = 1});
  EXPECT_THAT(played.log, ElementsAre("step", "+10", "step", "-10#0", "+10", "step", "-10#1", "+10", "step", "-10#2",
                                      "+7", "-7#3"));
}

// A release of something from before the steady steps happens once.
TEST(PlayerTest, OneOffReleasesAreNotRepeated) {
  Played played =
      PlayTrace(FromCsv("alloc,1,10\nmark,s,\nalloc,2,20\nfree,2,\nmark,s,\nalloc,3,20\nfree,1,\nfree,3,\nmark,e,\n"),
                {.repeat = 1});
  EXPECT_THAT(played.log, ElementsAre("+10", "step", "+20", "-20#1", "step", "+20", "-10#0", "-20#2", "step", "+20",
                                      "-20#3", "step"));
}

// ... also when the request of that number is live in a step that it would lead to.
TEST(PlayerTest, OneOffReleasesDoNotHitOthers) {
  Played played =
      PlayTrace(FromCsv("alloc,1,10\nmark,s,\nalloc,2,20\nmark,s,\nalloc,3,20\nfree,1,\nmark,e,\n"), {.repeat = 1});
  EXPECT_THAT(played.log, ElementsAre("+10", "step", "+20", "step", "+20", "-10#0", "step", "+20", "step",  //
                                      "-20#1", "-20#2", "-20#3"));
}

TEST(PlayerTest, WholePassesBeginEmpty) {
  Played played = PlayTrace(FromCsv("mark,s,\nalloc,1,10\nmark,s,\nfree,1,\nalloc,2,10\nmark,end,\n"), {.passes = 2});
  EXPECT_THAT(played.log, ElementsAre("step", "+10", "step", "-10#0", "+10", "step", "-10#1",  //
                                      "step", "+10", "step", "-10#2", "+10", "step", "-10#3"));
}

TEST(PlayerTest, StreamsAndInterrupts) {
  Trace trace = FromCsv("mark,expect,\nalloc,1,10\nmark,interrupt,\nalloc,2,20\nmark,resume,\nfree,1,\nfree,2,\n");
  trace.events[3].stream = 3;
  trace.events[5].stream = 4;
  Played played = PlayTrace(trace, {.touch = false});
  EXPECT_THAT(played.log, ElementsAre("expect", "+10", "interrupt", "+20@3", "resume", "-10#0@4", "-20#1"));
}

TEST(PlayerTest, WeightsAndOptimizerState) {
  std::string step;
  for (int i = 0; i < 9; ++i) step += "alloc," + std::to_string(i) + ",1\nfree," + std::to_string(i) + ",\n";
  PlayOptions options = {.passes = 2, .weights = 5000, .optimizer_state = 6 * 1024 + 512};
  Played played = PlayTrace(FromCsv("mark,s,\n" + step + "mark,s,\n" + step + "mark,e,\n"), options);
  std::vector<std::string> allocations;
  for (const std::string& what : played.log) {
    if (what[0] == '+' || what == "step") allocations.push_back(what);
  }
  std::vector<std::string> expected = {"+2048", "+2048", "+904", "step"};
  expected.insert(expected.end(), 7, "+1");
  for (const char* what : {"+2048", "+1", "+2048", "+1", "+2560", "step"}) expected.push_back(what);
  for (int rest = 0; rest < 3; ++rest) {
    if (rest > 0) expected.push_back("step");
    expected.insert(expected.end(), 9, "+1");
    if (rest == 0 || rest == 2) expected.push_back("step");
  }
  EXPECT_THAT(allocations, ElementsAreArray(expected));
  // They are the last to go, in the order they came.
  EXPECT_THAT(std::vector<std::string>(played.log.end() - 6, played.log.end()),
              ElementsAre("-2048#0", "-2048#1", "-904#2", "-2048#10", "-2048#12", "-2560#14"));
}

TEST(PlayerTest, AFailedRequestEndsIt) {
  RecordedSteps recorded = CutIntoSteps(FromCsv(kCarried));
  LogDevice device;
  device.fail_at = 3;
  ReplayHooks hooks;
  PlayOptions options;
  PlayResult result = Player(recorded, options, hooks, &device).Play();
  EXPECT_EQ(result.error, "request 2 of 200 bytes: out of memory");
}

// A repetition does the same as a longer recording: random steady programs, recorded for K steps and repeated, against
// the same program recorded for longer.
TEST(PlayerTest, RepetitionsEqualALongerRecording) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 200; ++round) {
    struct Item {
      uint64_t bytes;
      unsigned later;  // steps until the release, 0 to 2; 3: never
      unsigned slot;   // the position in the step at which it is released
    };
    std::vector<Item> items(1 + random() % 12);
    for (Item& item : items)
      item = {1 + random() % 5, random() % 4 == 0 ? 1 + static_cast<unsigned>(random() % 2) : 0, 0};
    for (size_t i = 0; i < items.size(); ++i) {
      size_t from = items[i].later == 0 ? i : 0;
      items[i].slot = static_cast<unsigned>(from + random() % (items.size() - from));
    }
    auto record = [&items](uint64_t steps) {
      Trace trace;
      for (uint64_t step = 0; step < steps; ++step) {
        trace.events.push_back({.kind = EventKind::kMark});
        for (size_t at = 0; at < items.size(); ++at) {
          trace.events.push_back(
              {.kind = EventKind::kAllocate, .id = step * items.size() + at, .bytes = items[at].bytes});
          for (size_t i = 0; i < items.size(); ++i) {
            if (items[i].slot != at || step < items[i].later) continue;
            trace.events.push_back({.kind = EventKind::kRelease,
                                    .id = (step - items[i].later) * items.size() + i,
                                    .bytes = items[i].bytes});
          }
        }
      }
      trace.events.push_back({.kind = EventKind::kMark});
      return trace;
    };
    uint64_t more = random() % 6 + 1;
    Played repeated = PlayTrace(record(4), {.repeat = more, .touch = false});
    Played recorded = PlayTrace(record(4 + more), {.touch = false});
    ASSERT_EQ(repeated.log, recorded.log);
    ASSERT_EQ(repeated.result.live_peak, recorded.result.live_peak);
  }
}

TEST(TensorSizesTest, AddUpAndAreAMixture) {
  EXPECT_TRUE(TensorSizes(0).empty());
  for (uint64_t total : {uint64_t{1}, uint64_t{5000}, uint64_t{300} << 20, uint64_t{3} << 30}) {
    std::vector<uint64_t> sizes = TensorSizes(total);
    uint64_t sum = 0;
    for (uint64_t size : sizes) {
      sum += size;
      EXPECT_LE(size, uint64_t{64} << 20);
    }
    EXPECT_EQ(sum, total);
    for (size_t i = 0; i + 1 < sizes.size(); ++i) EXPECT_GE(sizes[i], 2048u);
    EXPECT_EQ(sizes, TensorSizes(total));
  }
  std::vector<uint64_t> sizes = TensorSizes(uint64_t{300} << 20);
  EXPECT_EQ(*std::max_element(sizes.begin(), sizes.end()), uint64_t{64} << 20);
  EXPECT_GT(std::count(sizes.begin(), sizes.end(), 2048u), 10);
}

}  // namespace
}  // namespace hotpack
