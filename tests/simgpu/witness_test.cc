// The checker with an allocator between the program and the driver, however the program reaches it.
#include <gtest/gtest.h>

#include "tests/simgpu/reports.h"
#include "tests/support/sanitized.h"

namespace simgpu_test {
namespace {

class WitnessTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
#ifdef HOTPACK_SANITIZED
    GTEST_SKIP() << "preloading needs a build without sanitizers";
#endif
  }
  static CheckedOutcome Client(const std::string& allocator, const std::string& more = "") {
    const std::string build = HOTPACK_BINARY_DIR;
    std::string preload = "LD_PRELOAD='" + build + "/lib/simgpu/libsimgpu_witness.so";
    if (!allocator.empty()) preload += " " + build + "/tests/libsimgpu_test_allocator.so";
    return RunChecked(build + "/tests/simgpu_witness_client " + GetParam() + more,
                      preload + "' TEST_ALLOCATOR=" + allocator);
  }
};

TEST_P(WitnessTest, AllocatorWithoutOrderIsReported) {
  const CheckedOutcome outcome = Client("none");
  EXPECT_EQ(outcome.kinds, "reuse-without-order") << outcome.err;
  EXPECT_EQ(outcome.reports.size(), 1u) << outcome.err;
  EXPECT_EQ(outcome.code, 97);
}

TEST_P(WitnessTest, AllocatorThatWaitsIsClean) {
  const CheckedOutcome outcome = Client("sync");
  EXPECT_EQ(outcome.kinds, "") << outcome.err;
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

TEST_P(WitnessTest, OverlapIsReported) { EXPECT_NE(Client("overlap").kinds.find("overlap"), std::string::npos); }

TEST_P(WitnessTest, TheDriverAloneIsClean) {
  const CheckedOutcome outcome = Client("");
  EXPECT_EQ(outcome.kinds, "") << outcome.err;
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

TEST_P(WitnessTest, DoubleFreeIsReportedOnce) {
  for (const char* allocator : {"", "sync"}) {
    const CheckedOutcome outcome = Client(allocator, " twice");
    EXPECT_EQ(outcome.kinds, "double-free") << outcome.err;
    EXPECT_EQ(outcome.reports.size(), 1u) << outcome.err;
  }
}

TEST_P(WitnessTest, ARefusedReleaseMayBeMadeAgain) {
  const CheckedOutcome outcome = Client("", " refused");
  EXPECT_EQ(outcome.kinds, "") << outcome.err;
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

INSTANTIATE_TEST_SUITE_P(Ways, WitnessTest, testing::Values("linked", "dlsym", "lookup", "runtime"),
                         [](const testing::TestParamInfo<const char*>& c) { return std::string(c.param); });

}  // namespace
}  // namespace simgpu_test
