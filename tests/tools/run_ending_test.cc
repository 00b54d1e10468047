// The words about a program's end in the last line of `hotpack run`.
#include "tools/run/run_ending.h"

#include <csignal>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/cli/nearest_name.h"

namespace hotpack {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kMiB = 1 << 20, kGiB = 1 << 30;

FailedRequest Failed() {
  FailedRequest failed = {};
  failed.count = 1;
  failed.bytes = 132 * kMiB;
  failed.total = 16 * kGiB;
  failed.free = 126 * kMiB;
  failed.held = failed.total - failed.free;
  failed.live = failed.held - 100 * kMiB;
  failed.requests = 193;
  return failed;
}

ProcessStats Process(uint64_t requests, const FailedRequest& failed) {
  ProcessStats process;
  process.stats.requests = requests;
  process.failed = failed;
  return process;
}

TEST(RunEndingTest, OutOfMemory) {
  FailedRequest failed = Failed();
  EXPECT_EQ(
      OutOfMemoryText(failed),
      "out of memory before the first step was complete: 132.0 MiB asked, 126.0 MiB free; live 15.8 GiB of "
      "16.0 GiB; would help: a smaller batch or a larger device: live and asked would fit, but the 100.0 MiB that "
      "hotpack has idle are in pieces");
  failed.iterations = 2;
  failed.live = failed.held;
  EXPECT_THAT(OutOfMemoryText(failed), HasSubstr("out of memory at step 3: "));
  EXPECT_THAT(OutOfMemoryText(failed),
              HasSubstr("would help: a smaller batch, recomputation, or a device of 16.0 GiB"));
  failed.held -= 4 * kGiB;
  failed.live = failed.held - kMiB;
  EXPECT_THAT(OutOfMemoryText(failed), HasSubstr("less for other processes and the driver, which have 4.0 GiB"));
  failed.bytes = 64 * kGiB;
  EXPECT_THAT(OutOfMemoryText(failed), HasSubstr("a device of 79."));
  failed.limited = 1;
  EXPECT_THAT(OutOfMemoryText(failed),
              HasSubstr("16.0 GiB, the limit set for the process; would help: a smaller batch, "
                        "or a limit of 75."));
  failed.bytes = std::numeric_limits<uint64_t>::max();
  EXPECT_THAT(OutOfMemoryText(failed), HasSubstr(": the driver found too little, 126.0 MiB free"));
}

// A program that got over it, or went on and failed for another reason, did not end without memory.
TEST(RunEndingTest, WhichProcessEndedWithoutMemory) {
  const std::vector<ProcessStats> processes = {Process(1000, {}), Process(193, Failed())};
  EXPECT_EQ(EndedWithoutMemory(processes, 1), &processes[1]);
  EXPECT_EQ(EndedWithoutMemory(processes, 0), nullptr);
  EXPECT_EQ(EndedWithoutMemory({Process(194, Failed())}, 1), nullptr);
  EXPECT_EQ(EndedWithoutMemory({}, 1), nullptr);
}

TEST(RunEndingTest, ExitCodes) {
  EXPECT_EQ(ExitText(0), "");
  EXPECT_EQ(ExitText(1), "the program failed with exit code 1");
  EXPECT_EQ(ExitText(128 + SIGSEGV), "signal SIGSEGV ended the program");
  EXPECT_EQ(ExitText(255), "the program failed with exit code 255");
}

TEST(RunEndingTest, RequestsThatFoundNone) {
  EXPECT_EQ(FailedRequestsText({Process(5, {})}), "");
  FailedRequest failed = Failed();
  EXPECT_EQ(FailedRequestsText({Process(5, failed)}), "1 request found no memory, of 132.0 MiB");
  failed.count = 3;
  EXPECT_EQ(FailedRequestsText({Process(5, {}), Process(5, failed)}),
            "3 requests found no memory, the last one of 132.0 MiB");
}

TEST(NearestNameTest, WhatWasMeant) {
  const std::vector<std::string> names = {"run", "record", "report", "replay", "compare", "show"};
  EXPECT_EQ(NearestName("compar", names), "compare");
  EXPECT_EQ(NearestName("repotr", names), "report");
  EXPECT_EQ(NearestName("comp", names), "compare");
  EXPECT_EQ(NearestName("rnu", names), "run");
  EXPECT_EQ(NearestName("dance", names), "");
  EXPECT_EQ(NearestName("", names), "");
  EXPECT_EQ(NearestName(std::string(1000, 'x'), names), "");
  EXPECT_EQ(NearestName("run", {}), "");
}

}  // namespace
}  // namespace hotpack
