// Programs compiled by nvcc, with the runtime shared and linked in, run on the simulated device.
#include <gtest/gtest.h>

#include "tests/simgpu/reports.h"
#include "tests/support/sanitized.h"

namespace simgpu_test {
namespace {

class NvccTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
#ifdef HOTPACK_SANITIZED
    GTEST_SKIP() << "programs of nvcc need a build without sanitizers";
#endif
#ifndef SIMGPU_HAVE_NVCC
    GTEST_SKIP() << "nvcc was not found when this was configured";
#endif
  }
  static CheckedOutcome RunIt(const std::string& arguments, const std::string& settings = "") {
    return RunChecked(std::string(HOTPACK_BINARY_DIR) + "/tests/simgpu_" + GetParam() + " " + arguments,
                      "LD_LIBRARY_PATH=" HOTPACK_BINARY_DIR "/lib/simgpu " + settings);
  }
};

TEST_P(NvccTest, RunsClean) {
  const CheckedOutcome outcome = RunIt("");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.kinds, "");
  EXPECT_NE(outcome.out.find("done"), std::string::npos);
  EXPECT_EQ(outcome.err, "") << "all parameters are known";
}

TEST_P(NvccTest, MistakesAreReported) {
  EXPECT_EQ(RunIt("stale").kinds, "use-after-free");
  EXPECT_EQ(RunIt("struct").kinds, "reuse-without-order");
}

TEST_P(NvccTest, RunsUnderTheWitness) {
  const std::string preload = "LD_PRELOAD=" HOTPACK_BINARY_DIR "/lib/simgpu/libsimgpu_witness.so";
  const CheckedOutcome clean = RunIt("", preload);
  EXPECT_EQ(clean.code, 0) << clean.err;
  EXPECT_EQ(RunIt("stale", preload).kinds, "use-after-free");
}

INSTANTIATE_TEST_SUITE_P(Builds, NvccTest,
                         testing::Values("training", "training_plain", "training_packed", "training_ptx",
                                         "training_per_thread", "training_static", "training_static_named"),
                         [](const testing::TestParamInfo<const char*>& c) { return std::string(c.param); });

// Programs of what else there is in the API; they look at what comes back themselves.
class NvccFeatures : public NvccTest {};

TEST_P(NvccFeatures, RunsClean) {
  const CheckedOutcome outcome = RunIt(HOTPACK_BINARY_DIR "/tests/simgpu_features.fatbin");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.kinds, "");
  EXPECT_EQ(outcome.out, "done\n");
  EXPECT_EQ(outcome.err, "");
}

INSTANTIATE_TEST_SUITE_P(Builds, NvccFeatures,
                         testing::Values("graphs", "graphs_static", "features", "features_static"),
                         [](const testing::TestParamInfo<const char*>& c) { return std::string(c.param); });

class NvccTensorMaps : public NvccTest {};

TEST_P(NvccTensorMaps, AreUses) { EXPECT_EQ(RunIt("unordered").kinds, "reuse-without-order"); }

INSTANTIATE_TEST_SUITE_P(Builds, NvccTensorMaps, testing::Values("features", "features_static"),
                         [](const testing::TestParamInfo<const char*>& c) { return std::string(c.param); });

}  // namespace
}  // namespace simgpu_test
