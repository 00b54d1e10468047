// `hotpack replay`: what it calls, by which interface, and what it says of the recording's steps.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/subprocess.h"
#include "tests/tools/command_folder.h"
#include "tests/tools/command_with_fake_cuda.h"

namespace {

using hotpack_test::Hotpack;
using hotpack_test::kData;
using hotpack_test::kFakeCuda;
using hotpack_test::Lines;
using hotpack_test::Outcome;
using hotpack_test::ReadFile;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

long Count(const std::vector<std::string>& lines, const std::string& prefix) {
  return std::count_if(lines.begin(), lines.end(), [&](const std::string& line) { return line.starts_with(prefix); });
}

class ReplayCommandTest : public hotpack_test::CommandFolder {
 protected:
  Outcome Replay(std::vector<std::string> arguments, std::map<std::string, std::string> environment = {}) {
    arguments.insert(arguments.begin(), "replay");
    environment.insert(kFakeCuda.begin(), kFakeCuda.end());
    environment.emplace("FAKE_CUDA_LOG", Path("log"));
    unlink(Path("log").c_str());
    Outcome outcome = Hotpack(arguments, environment);
    log_ = Lines(ReadFile(Path("log")));
    return outcome;
  }
  std::vector<std::string> log_;
};

TEST_F(ReplayCommandTest, PlaysThroughEachApi) {
  struct Api {
    const char *name, *allocation, *release;
  };
  for (const Api& api : {Api{"malloc", "cudaMalloc ", "cudaFree "}, Api{"async", "cudaMallocAsync ", "cudaFreeAsync "},
                         Api{"driver", "cuMemAlloc ", "cuMemFree "}}) {
    Outcome outcome = Replay({kData + "mlp-adam.trace", "--api", api.name, "--repeat", "2"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    EXPECT_THAT(outcome.out, ::testing::MatchesRegex("requests    276\nms per step [0-9.]+ \\(median of 6\\)\n"
                                                     "live peak   13746688 \\(13.1 MiB\\)\n"));
    EXPECT_EQ(Count(log_, api.allocation), 276);
    EXPECT_EQ(Count(log_, api.release), 276);
    EXPECT_EQ(Count(log_, "fill "), 276);
    EXPECT_EQ(Count(log_, "check "), 276);
    EXPECT_EQ(Count(log_, "step"), 0);
    bool async = std::string(api.name) == "async";
    EXPECT_EQ(Count(log_, std::string(api.allocation) + "200704 stream 1"), async ? 6 : 0)
        << "the input has its stream";
  }
}

TEST_F(ReplayCommandTest, AReleaseOnAnotherStreamIsOrdered) {
  // Written here by hand: an allocation on stream 0 of 512 bytes, its release on stream 1.
  std::string trace =
      ReadFile(kData + "mlp-adam.trace").substr(0, 256) + std::string("\x61\x01\x0A\x00\x00\x01\x00", 7);
  trace[16] = 7, trace[17] = 1;
  Outcome outcome = Replay({Write("two.trace", trace), "--api", "async"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(log_, ElementsAre("cudaMallocAsync 512 stream 0", "fill 0 stream 0", "check 0 stream 0",
                                "record stream 0", "wait stream 1", "cudaFreeAsync stream 1", "sync"));
}

TEST_F(ReplayCommandTest, MarksAndWaitingForThePlan) {
  std::string preload = hotpack_test::SanitizerPreload() + HOTPACK_FAKE_CUDA "/libcuda.so.1";
  Outcome outcome =
      Replay({kData + "lstm.csv", "--marks", "api", "--wait-plan", "--repeat", "3"}, {{"LD_PRELOAD", preload}});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(Count(log_, "step"), 4 + 3);
  EXPECT_EQ(Count(log_, "wait_plan -1"), 4 + 3);
  outcome = Replay({kData + "lstm.csv"}, {{"LD_PRELOAD", preload}});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(Count(log_, "step") + Count(log_, "wait_plan"), 0);
}

TEST_F(ReplayCommandTest, WholeAndUnsteady) {
  Outcome outcome = Replay({kData + "lstm.csv", "--whole", "3"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.out, StartsWith("requests    3105\n"));
  EXPECT_EQ(outcome.err, "");
  std::string file = Write("unsteady.csv", "event,id,bytes\nmark,s,\nalloc,1,5\nmark,s,\nalloc,2,6\nmark,e,\n");
  outcome = Replay({file, "--repeat", "4"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.out, StartsWith("requests    10\n"));
  EXPECT_EQ(outcome.err,
            "hotpack replay: " + file + ": no steady step (the last two marked steps differ): the whole is repeated\n");
  file = Write("unmarked.csv", "event,id,bytes\nalloc,1,5\nalloc,2,6\n");
  outcome = Replay({file, "--repeat", "1"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "hotpack replay: " + file +
                             ": no steady step (the recording has no marks; hotpack.step() or hotpack_step() sets "
                             "them): the whole is repeated\n");
}

TEST_F(ReplayCommandTest, WeightsAndOptimizerState) {
  Outcome outcome = Replay({kData + "lstm.csv", "--weights", "30M", "--optimizer-state", "20M", "--no-touch"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("live peak   63604736 "));
  EXPECT_EQ(Count(log_, "fill") + Count(log_, "check") + Count(log_, "memset"), 0);
}

TEST_F(ReplayCommandTest, AMismatchIsCountedAndFails) {
  Outcome outcome = Replay({Write("two.csv", "event,id,bytes\nalloc,1,100\nalloc,2,100\nfree,1,\nfree,2,\n")},
                           {{"FAKE_CUDA_SHARE", "1"}});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err, "hotpack replay: " + Path("two.csv") + ": 1 block did not hold what was written to them\n");
}

TEST_F(ReplayCommandTest, WithoutAModuleBytesAreSet) {
  Outcome outcome = Replay({kData + "cnn-carried.csv"}, {{"FAKE_CUDA_NO_MODULE", "1"}});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(Count(log_, "memset "), 4 * 162);
}

TEST_F(ReplayCommandTest, OutOfMemoryEndsIt) {
  for (const char* api : {"malloc", "driver"}) {
    Outcome outcome = Replay({kData + "lstm.csv", "--api", api}, {{"FAKE_CUDA_FAIL_AT", "5"}});
    EXPECT_EQ(outcome.code, 1);
    EXPECT_EQ(outcome.out, "");
    std::string call = std::string(api) == "malloc" ? "cudaMalloc" : "cuMemAlloc";
    EXPECT_EQ(outcome.err,
              "hotpack replay: " + kData + "lstm.csv: request 4 of 16384 bytes: " + call + ": out of memory (2)\n");
  }
}

// The whole chain on the simulated device: its checker sees every use of every block.
TEST_F(ReplayCommandTest, OnTheSimulatedDevice) {
  const std::string simulated = HOTPACK_BINARY_DIR "/lib/simgpu";
  if (!std::filesystem::exists(simulated + "/libcudart.so.13")) GTEST_SKIP() << "no simulated device in " << simulated;
  for (const char* api : {"malloc", "async", "driver"}) {
    Outcome outcome = Hotpack({"run", "--simulate", "--json-stats", Path("stats"), "--force", "--", HOTPACK_COMMAND,
                               "replay", kData + "cnn-carried.csv", "--api", api, "--repeat", "10", "--wait-plan"},
                              {{"LD_LIBRARY_PATH", ""}, {"LD_PRELOAD", ""}});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, StartsWith("requests    702\n"));
    nlohmann::json stats = nlohmann::json::parse(ReadFile(Path("stats")));
    EXPECT_EQ(stats["checker_reports"], 0) << outcome.err;
    EXPECT_GT(stats["planned"], 300) << api;
  }
}

// The same with one plain allocation for an arena: all of it is held, every request lies in it.
TEST_F(ReplayCommandTest, OnTheSimulatedDeviceWithAPlainArena) {
  const std::string simulated = HOTPACK_BINARY_DIR "/lib/simgpu";
  if (!std::filesystem::exists(simulated + "/libcudart.so.13")) GTEST_SKIP() << "no simulated device in " << simulated;
  constexpr int64_t kArena = int64_t{256} << 20;
  Outcome outcome = Hotpack({"run", "--simulate", "--json-stats", Path("stats"), "--", HOTPACK_COMMAND, "replay",
                             kData + "cnn-carried.csv", "--repeat", "10", "--wait-plan"},
                            {{"LD_LIBRARY_PATH", ""}, {"LD_PRELOAD", ""}, {"HOTPACK_ARENA", "plain:256"}});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  nlohmann::json stats = nlohmann::json::parse(ReadFile(Path("stats")));
  EXPECT_EQ(stats["checker_reports"], 0) << outcome.err;
  EXPECT_GT(stats["planned"], 300);
  EXPECT_EQ(stats["passed_through"], 0);
  EXPECT_EQ(stats["reserved_peak"], kArena);
}

TEST_F(ReplayCommandTest, NoCuda) {
  if (access("/usr/lib/x86_64-linux-gnu/libcuda.so.1", F_OK) == 0) GTEST_SKIP() << "there is a driver";
  Outcome outcome =
      Hotpack({"replay", kData + "lstm.csv", "--api", "driver"}, {{"LD_LIBRARY_PATH", ""}, {"LD_PRELOAD", ""}});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(Lines(outcome.err).size(), 1u);
  EXPECT_THAT(outcome.err, StartsWith("hotpack replay: cannot load libcuda.so.1: "));
  EXPECT_THAT(outcome.err, HasSubstr("; without a GPU: hotpack run --simulate -- hotpack replay "));
}

}  // namespace
