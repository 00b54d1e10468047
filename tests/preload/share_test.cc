// hotpack_export and hotpack_import, on the simulated device: with libhotpack.so alone, and under the preload.
#include <map>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/subprocess.h"

namespace {

class Share : public testing::TestWithParam<const char*> {
 protected:
  static void Run(const std::string& scenario, std::map<std::string, std::string> environment = {}) {
    environment["LD_LIBRARY_PATH"] = HOTPACK_BINARY_DIR "/lib/simgpu:" HOTPACK_BINARY_DIR "/lib";
    environment["LD_PRELOAD"] = std::string(GetParam()) == "preload" ? HOTPACK_PRELOAD : "";
    environment["HOTPACK_STATS_DIR"] = environment["HOTPACK_TRACE"] = "";
    const hotpack_test::Outcome outcome =
        hotpack_test::RunProgram({HOTPACK_TEST_DIR "/share_client", scenario}, environment);
    EXPECT_EQ(outcome.code, 0) << scenario << ": " << outcome.err;
    EXPECT_THAT(outcome.err, testing::Not(testing::HasSubstr("REPORT")));
  }
};
INSTANTIATE_TEST_SUITE_P(How, Share, testing::Values("alone", "preload"),
                         [](const auto& how) { return std::string(how.param); });

TEST_P(Share, BothSeeWhatEitherWrites) { Run("both"); }
TEST_P(Share, WhatIsNoBlockIsRefused) { Run("refused"); }
TEST_P(Share, APlainArenaHasNoFiles) { Run("plain", {{"HOTPACK_ARENA", "plain:64"}}); }

TEST_P(Share, AFailedImportLeavesNothing) {
  for (const char* call : {"cuMemImportFromShareableHandle:1", "cuMemImportFromShareableHandle:2"}) {
    Run("failing", {{"SIMGPU_FAIL", call}, {"HOTPACK_HANDLE", "2:1048576"}});
  }
}

TEST_P(Share, AFailedExportClosesItsFiles) {
  Run("failing_export", {{"SIMGPU_FAIL", "cuMemExportToShareableHandle:2=304"}, {"HOTPACK_HANDLE", "2:1048576"}});
}

}  // namespace
