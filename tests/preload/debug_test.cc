// HOTPACK_DEBUG, HOTPACK_OVERCOMMIT and jobs that never are hot, on the simulated device. (Its checker would take the
// writes into gaps for the program's own mistakes, which they are: it is off where hotpack is to find them.)
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/preload/simulate.h"

namespace {

using Result = hotpack_test::SimulateResult;
using hotpack_test::Simulate;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

Result Debug(const std::string& mode, const std::string& what) {
  return Simulate({HOTPACK_TEST_DIR "/debug_client", what}, {{"HOTPACK_DEBUG", mode}, {"SIMGPU_CHECK", "0"}});
}

Result Oversize(const std::string& memory, const std::string& option, const std::string& weights = "0") {
  return Simulate({HOTPACK_TEST_DIR "/oversize_client", weights},
                  {{"SIMGPU_MEMORY", memory}, {"HOTPACK_OVERCOMMIT", option}});
}

TEST(DebugMode, ACorrectProgramIsNotAccused) {
  for (const char* mode : {"guard", "poison", "guard,poison", "guard:5000"}) {
    for (const char* what : {"clean", "capture"}) {
      const Result result = Debug(mode, what);
      EXPECT_EQ(result.outcome.code, 0) << mode << " " << what << ": " << result.outcome.err;
      EXPECT_THAT(result.outcome.err, Not(HasSubstr("out of bounds"))) << mode;
      EXPECT_THAT(result.outcome.err, Not(HasSubstr("HOTPACK_DEBUG"))) << mode;
      EXPECT_GT(result.stats["planned"], 0) << mode;
    }
  }
}

TEST(DebugMode, AWriteAfterTheEndIsFoundAndHitsNobody) {
  const Result result = Debug("guard,poison", "after");
  EXPECT_EQ(result.outcome.code, 0) << result.outcome.err;
  EXPECT_THAT(result.outcome.err, HasSubstr("of 1000 bytes, request 120"));
  EXPECT_THAT(result.outcome.err, HasSubstr("byte 0 after its end was written, 0x5a there"));
}

TEST(DebugMode, AWriteBeforeTheStartIsFound) {
  const Result result = Debug("guard", "before");
  EXPECT_EQ(result.outcome.code, 0) << result.outcome.err;
  EXPECT_THAT(result.outcome.err, HasSubstr("of 300000 bytes, request 121"));
  EXPECT_THAT(result.outcome.err, HasSubstr("byte 1 before its start was written, 0x5a there"));
}

TEST(DebugMode, AWiderGapTellsWhoseWriteItWas) {
  const Result result = Debug("guard:2000", "far");
  EXPECT_THAT(result.outcome.err, HasSubstr("of 4096 bytes, request 122"));
  EXPECT_THAT(result.outcome.err, HasSubstr("byte 700 after its end"));
}

TEST(DebugMode, ReleasedMemoryIsPoisoned) {
  EXPECT_EQ(Debug("poison", "released").outcome.out, "db db\n");
  EXPECT_NE(Debug("guard", "released").outcome.out, "db db\n");
}

TEST(DebugMode, WhatIsNeverReleasedIsLookedAtOnDemandAndAtTheEndOfItsContext) {
  const Result result = Debug("guard", "weights");
  EXPECT_EQ(result.outcome.code, 0) << result.outcome.err;
  EXPECT_THAT(result.outcome.err, HasSubstr("of 2000 bytes, request 160: byte 0 after its end"));
  EXPECT_THAT(result.outcome.err, HasSubstr("of 3000 bytes, request 161: byte 0 after its end"));
}

TEST(DebugMode, AWrongValueIsSaidAndIgnored) {
  for (const char* mode : {"gard", "guard,", "guard:0", "guard:x", "poison:3", "guard:99999999999"}) {
    const Result result = Debug(mode, "after");
    EXPECT_THAT(result.outcome.err, HasSubstr(std::string("HOTPACK_DEBUG=") + mode + " is not")) << mode;
    EXPECT_THAT(result.outcome.err, Not(HasSubstr("out of bounds"))) << mode;
  }
}

TEST(Overcommit, WithoutItObservingNeedsMoreThanTheDeviceHas) {
  const Result result = Oversize("76M", "");
  EXPECT_EQ(result.outcome.code, 1);
  EXPECT_THAT(result.outcome.out, HasSubstr("error 2\nstep 0 failed"));  // the driver's own out of memory
  EXPECT_EQ(result.stats["checker_reports"], 0);
}

// The job's live peak is 72.5 MiB: in 76 MiB best fit does not do, the plan does.
TEST(Overcommit, ObservesInManagedMemoryAndServesInDeviceMemory) {
  const Result result = Oversize("76M", "managed:400");
  EXPECT_EQ(result.outcome.code, 0) << result.outcome.err;
  EXPECT_EQ(result.stats["checker_reports"], 0);
  EXPECT_GT(result.stats["managed_peak"], 0);
  EXPECT_GE(result.stats["steady_iteration"], 0);
  EXPECT_EQ(result.stats["planned_steady"], result.stats["requests_steady"]);
  EXPECT_LE(result.stats["reserved_peak"], 76 << 20);
  EXPECT_THAT(result.outcome.err, HasSubstr("hotpack: the device is full"));
  EXPECT_THAT(result.outcome.err, HasSubstr("hotpack: the plan is in force"));
}

TEST(Overcommit, APlanThatDoesNotFitSaysSoAndTheJobGoesOn) {
  const Result result = Oversize("70M", "managed:400");
  EXPECT_EQ(result.outcome.code, 0) << result.outcome.err;
  EXPECT_EQ(result.stats["checker_reports"], 0);
  EXPECT_EQ(result.stats["planned"], 0);
  EXPECT_THAT(result.outcome.err,
              ContainsRegex("the plan does not fit: 7[2-9] MiB for it and 0 MiB for blocks that stay, "
                            "but the device gave 70 MiB \\(of 70\\): [2-9] MiB too few"));
}

TEST(Overcommit, WhatStaysCounts) {
  const Result fits = Oversize("108M", "managed:400", "30");
  EXPECT_EQ(fits.outcome.code, 0) << fits.outcome.err;
  EXPECT_EQ(fits.stats["checker_reports"], 0);
  EXPECT_GE(fits.stats["steady_iteration"], 0);
  const Result does_not = Oversize("100M", "managed:400", "30");
  EXPECT_EQ(does_not.outcome.code, 0) << does_not.outcome.err;
  EXPECT_THAT(does_not.outcome.err,
              ContainsRegex("7[2-9] MiB for it and 30 MiB for blocks that stay, but the device gave 100 MiB"));
}

TEST(Overcommit, TheLimitHolds) {
  const Result result = Oversize("60M", "managed:8");
  EXPECT_EQ(result.outcome.code, 1);
  EXPECT_THAT(result.outcome.out, HasSubstr("error 2"));
  EXPECT_LE(result.stats["managed_peak"], 8 << 20);
}

TEST(Overcommit, AWrongValueIsSaidAndIgnored) {
  for (const char* option : {"yes", "managed:", "managed:-3", "managed:0"}) {
    const Result result = Oversize("70M", option);
    EXPECT_THAT(result.outcome.err, HasSubstr(std::string("HOTPACK_OVERCOMMIT=") + option + " is not")) << option;
    EXPECT_EQ(result.outcome.code, 1);
  }
}

// More than a million requests of which nothing repeats: hotpack's time is compared with that of the driver's pool
// (whose time here means nothing: both outcomes are right, but they must be said and counted).
TEST(NeverHot, WhatIsLeftToTheDriverIsCountedAndStaysRight) {
  const Result result = Simulate({HOTPACK_TEST_DIR "/pool_client", "1100000"}, {});
  EXPECT_EQ(result.outcome.code, 0) << result.outcome.err;
  EXPECT_EQ(result.stats["checker_reports"], 0);
  EXPECT_EQ(result.stats["planned"], 0);
  const uint64_t served = result.stats["requests"], left = result.stats["passed_through"];
  EXPECT_EQ(served + left, 1100000u);
  EXPECT_GE(served, uint64_t{1} << 20);
  EXPECT_EQ(left > 0, result.outcome.err.find("allocations are left to it") != std::string::npos) << result.outcome.err;
}

}  // namespace
