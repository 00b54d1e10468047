// Each case of the cuBLAS shims (blas_cases.cc) gives the reports it must, and no others.
#include <gtest/gtest.h>

#include "tests/simgpu/reports.h"

namespace simgpu_test {
namespace {

struct Expected {
  const char* name;
  const char* kinds;  // "": none
};

const Expected kExpected[] = {
    {"GemmClean", ""},
    {"GemmBeyondA", "use-after-free"},
    {"GemmBeyondB", "use-after-free"},
    {"GemmBeyondC", "use-after-free"},
    {"GemmTransposed", ""},
    {"GemmOnAnotherStream", "reuse-without-order"},
    {"GemmAfterAnEvent", ""},
    {"GemmOfNothing", ""},
    {"GemmStrided", ""},
    {"GemmStridedBeyond", "use-after-free"},
    {"WorkspaceIsUsed", "use-after-free"},
    {"WorkspaceGoesWithTheStream", ""},
    {"ScalarsOnTheDevice", "use-after-free"},  // beta is in no block
    {"Vectors", ""},
    {"VectorBeyond", "use-after-free"},
    {"MatrixAndVector", ""},
    {"Triangular", ""},
    {"LtClean", ""},
    {"LtWithoutEpilogueNoBias", ""},
    {"LtBeyondBias", "use-after-free"},
    {"LtBiasGradient", ""},
    {"LtOnAnotherStream", "reuse-without-order"},
    {"LtBeyondA", "use-after-free"},
    {"Settings", ""},
};

class BlasCase : public testing::TestWithParam<Expected> {};
INSTANTIATE_TEST_SUITE_P(All, BlasCase, testing::ValuesIn(kExpected),
                         [](const testing::TestParamInfo<Expected>& c) { return std::string(c.param.name); });

TEST_P(BlasCase, GivesItsReports) {
  const CheckedOutcome outcome =
      RunChecked(std::string(HOTPACK_BINARY_DIR) + "/tests/simgpu_blas_cases " + GetParam().name);
  EXPECT_EQ(outcome.kinds, GetParam().kinds) << outcome.err;
  EXPECT_EQ(outcome.code, outcome.reports.empty() ? 0 : 97) << outcome.err;
}

// A library that was built against the real one finds all its names, with their versions.
TEST(Blas, HasItsNames) {
  for (const char* name : {"libcublas.so.13", "libcublasLt.so.13"}) {
    const std::string path = std::string(HOTPACK_BINARY_DIR) + "/lib/simgpu/" + name;
    const CheckedOutcome outcome = RunChecked("nm -D --defined-only --with-symbol-versions " + path);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_NE(outcome.out.find(std::string(name) == "libcublas.so.13" ? "cublasSgemm_v2@@libcublas.so.13"
                                                                      : "cublasLtMatmul@@libcublasLt.so.13"),
              std::string::npos);
    EXPECT_EQ(outcome.out.find("simgpu"), std::string::npos);
  }
}

}  // namespace
}  // namespace simgpu_test
