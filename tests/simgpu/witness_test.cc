// The checker with an allocator between the program and the driver, however the program reaches it.
#include <gtest/gtest.h>

#include "tests/simgpu/subprocess.h"

namespace simgpu_test {
namespace {

class WitnessTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "preloading needs a build without sanitizers";
#endif
  }
  static Outcome Client(const std::string& allocator, const std::string& more = "") {
    const std::string build = HOTPACK_BINARY_DIR;
    std::string preload = "LD_PRELOAD='" + build + "/lib/simgpu/libsimgpu_witness.so";
    if (!allocator.empty()) preload += " " + build + "/tests/libsimgpu_test_allocator.so";
    return RunProgram(build + "/tests/simgpu_witness_client " + GetParam() + more,
                      preload + "' TEST_ALLOCATOR=" + allocator);
  }
};

TEST_P(WitnessTest, AllocatorWithoutOrderIsReported) {
  const Outcome outcome = Client("none");
  EXPECT_EQ(outcome.kinds, "reuse-without-order") << outcome.error;
  EXPECT_EQ(outcome.reports.size(), 1u) << outcome.error;
  EXPECT_EQ(outcome.status, 97);
}

TEST_P(WitnessTest, AllocatorThatWaitsIsClean) {
  const Outcome outcome = Client("sync");
  EXPECT_EQ(outcome.kinds, "") << outcome.error;
  EXPECT_EQ(outcome.status, 0) << outcome.error;
}

TEST_P(WitnessTest, OverlapIsReported) { EXPECT_NE(Client("overlap").kinds.find("overlap"), std::string::npos); }

TEST_P(WitnessTest, TheDriverAloneIsClean) {
  const Outcome outcome = Client("");
  EXPECT_EQ(outcome.kinds, "") << outcome.error;
  EXPECT_EQ(outcome.status, 0) << outcome.error;
}

TEST_P(WitnessTest, DoubleFreeIsReportedOnce) {
  for (const char* allocator : {"", "sync"}) {
    const Outcome outcome = Client(allocator, " twice");
    EXPECT_EQ(outcome.kinds, "double-free") << outcome.error;
    EXPECT_EQ(outcome.reports.size(), 1u) << outcome.error;
  }
}

TEST_P(WitnessTest, ARefusedReleaseMayBeMadeAgain) {
  const Outcome outcome = Client("", " refused");
  EXPECT_EQ(outcome.kinds, "") << outcome.error;
  EXPECT_EQ(outcome.status, 0) << outcome.error;
}

INSTANTIATE_TEST_SUITE_P(Ways, WitnessTest, testing::Values("linked", "dlsym", "lookup", "runtime"),
                         [](const testing::TestParamInfo<const char*>& c) { return std::string(c.param); });

}  // namespace
}  // namespace simgpu_test
