// The C interface: with the preload, whose definitions win, and with libhotpack.so alone.
#include "gtest/gtest.h"
#include "tests/support/subprocess.h"

namespace {

hotpack_test::Outcome RunClient(const char* how) {
  const std::string preload = hotpack_test::SanitizerPreload() + (std::string(how) == "preload" ? HOTPACK_PRELOAD : "");
  return hotpack_test::RunProgram({HOTPACK_TEST_DIR "/c_api_client", how},
                                  {{"LD_PRELOAD", preload},
                                   {"LD_LIBRARY_PATH", HOTPACK_TEST_DIR "/stub:" HOTPACK_BINARY_DIR "/lib"},
                                   {"HOTPACK_STATS_DIR", ""},
                                   {"HOTPACK_TRACE", ""},
                                   {"ASAN_OPTIONS", "detect_leaks=0"}});
}

TEST(CApi, WithThePreload) {
  const auto outcome = RunClient("preload");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

TEST(CApi, Alone) {
  const auto outcome = RunClient("alone");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

}  // namespace
