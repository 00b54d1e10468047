// The hooks in front of the stub driver by link order, without LD_PRELOAD, so that a thread sanitizer can run.
#include "gtest/gtest.h"
#include "tests/support/subprocess.h"

namespace {

class Linked : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, Linked,
                         testing::Values("basic", "async", "threads", "eight_threads", "contexts", "capture",
                                         "second_stream"),
                         [](const auto& param) { return std::string(param.param); });

TEST_P(Linked, Scenario) {
  const hotpack_test::Outcome outcome = hotpack_test::RunProgram(
      {HOTPACK_TEST_DIR "/linked_client", GetParam(), "link"},
      {{"LD_LIBRARY_PATH", HOTPACK_TEST_DIR ":" HOTPACK_TEST_DIR "/stub"}, {"ASAN_OPTIONS", "detect_leaks=0"}});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
}

}  // namespace
