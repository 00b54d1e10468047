// A steady step waits for pages for at most 1 ms, with the published costs of the driver's calls.
#include <cstdio>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/preload/torch_run.h"

namespace {

using hotpack_test::TorchRun;

class PageTime : public testing::TestWithParam<const char*> {
 protected:
  // Returns the time in milliseconds that the longest steady step takes for pages.
  static double Longest(const std::vector<std::string>& mode) {
    std::vector<std::string> command = {"page_time_client"};
    command.insert(command.end(), mode.begin(), mode.end());
    const TorchRun run = hotpack_test::RunTorchClient(
        GetParam(), command, {{"SIMGPU_TIME", "1"}, {"SIMGPU_MEMORY", "80G"}, {"HOTPACK_WAIT_PLAN", "1"}});
    EXPECT_EQ(run.outcome.code, 0) << run.outcome.err.substr(0, 4000);
    EXPECT_THAT(run.reports, testing::Not(testing::HasSubstr("REPORT")));
    int steady = 0;
    double longest = -1, first = 0;
    const int found = sscanf(run.outcome.out.c_str(), "steady %d longest ms %lf steps %lf", &steady, &longest, &first);
    EXPECT_EQ(found, 3) << run.outcome.out;
    EXPECT_GE(steady, 10) << run.outcome.out;
    EXPECT_GE(first, 10) << "growth takes time: " << run.outcome.out;
    return longest;
  }
};

constexpr double kMost = 1;  // ms

TEST_P(PageTime, OfARecordedStep) {
  EXPECT_LE(Longest({"recording", HOTPACK_TEST_DATA "/resnet50.trace", "1"}), kMost);
}

// 57 GiB.
TEST_P(PageTime, OfARecordedStepOfALargeModel) {
  EXPECT_LE(Longest({"recording", HOTPACK_TEST_DATA "/resnet50.trace", "64"}), kMost);
}

TEST_P(PageTime, WithBlocksCarriedOver) { EXPECT_LE(Longest({"carried"}), kMost); }

// Between two hills most of the step's memory is idle for long.
TEST_P(PageTime, BetweenHills) { EXPECT_LE(Longest({"hills"}), kMost); }

TEST_P(PageTime, OfStepsOfSeveralShapes) { EXPECT_LE(Longest({"shapes"}), kMost); }

TEST_P(PageTime, WithHigherEvaluations) { EXPECT_LE(Longest({"evaluation"}), kMost); }

// Each step has an interruption, after which memory that is idle so long is given back. That happens once.
TEST_P(PageTime, WithLongInterruptions) { EXPECT_LE(Longest({"interrupted"}), kMost); }

// Every ten steps the job does something else for so long that its script ends. The script returns to its zone, whose
// 1.7 GiB of pages are there. (To move them would take 5 ms, new ones 160 ms.)
TEST_P(PageTime, AfterSomethingElseForLong) { EXPECT_LE(Longest({"parked"}), kMost); }

INSTANTIATE_TEST_SUITE_P(How, PageTime, testing::Values("alone", "preload"),
                         [](const auto& how) { return std::string(how.param); });

// Large handles make a recorded job of 57 and 71 GiB hold at most 0.5 % more than handles of 2 MiB.
TEST(LargeHandles, ARecordedJobHoldsHardlyMore) {
  for (const char* scale : {"64", "80"}) {
    const auto run = [scale](const char* handle) {
      return hotpack_test::Simulate(
          {HOTPACK_TEST_DIR "/page_time_client", "recording", HOTPACK_TEST_DATA "/resnet50.trace", scale},
          {{"SIMGPU_MEMORY", "160G"}, {"HOTPACK_HANDLE", handle}, {"LD_LIBRARY_PATH", HOTPACK_BINARY_DIR "/lib"}});
    };
    const auto large = run(""), single = run("2");
    ASSERT_EQ(large.outcome.code, 0) << large.outcome.err;
    ASSERT_EQ(single.outcome.code, 0) << single.outcome.err;
    EXPECT_LE(large.stats["reserved_peak"].get<double>(), 1.005 * single.stats["reserved_peak"].get<double>()) << scale;
    EXPECT_LE(large.stats["handles_created"].get<double>(), 0.2 * single.stats["handles_created"].get<double>());
  }
}

}  // namespace
