// Memory that goes back while the calling thread has no context, and green contexts, on the simulated device.
#include <map>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/subprocess.h"

namespace {

using hotpack_test::Outcome;

Outcome RunClient(const std::string& program, const std::string& scenario,
                  std::map<std::string, std::string> environment) {
  environment["LD_LIBRARY_PATH"] = HOTPACK_BINARY_DIR "/lib/simgpu:" HOTPACK_BINARY_DIR "/lib";
  environment["HOTPACK_STATS_DIR"] = environment["HOTPACK_TRACE"] = "";
  return hotpack_test::RunProgram({HOTPACK_TEST_DIR "/" + program, scenario}, environment);
}

TEST(WithoutAContext, ADriversBlockIsReleasedInItsContext) {
  const Outcome outcome = RunClient("context_client", "drivers_block", {{"HOTPACK", "0"}, {"LD_PRELOAD", ""}});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

TEST(WithoutAContext, TheArenaGivesItsMemoryBack) {
  for (const char* preload : {"", HOTPACK_PRELOAD}) {
    for (const char* arena : {"vmm", "auto"}) {
      const Outcome outcome = RunClient("context_client", "trim", {{"LD_PRELOAD", preload}, {"HOTPACK_ARENA", arena}});
      EXPECT_EQ(outcome.code, 0) << preload << "\n" << outcome.err;
    }
  }
}

// 1G: nine tenths of it are the arena, and the second block comes from the driver. 100M: there is no arena.
TEST(Contexts, WithoutHooksCopiesNeedNoAccess) {
  for (const char* memory : {"1G", "100M"}) {
    for (const char* hotpack : {"", "0"}) {
      const Outcome outcome = RunClient("context_client", "copies",
                                        {{"LD_PRELOAD", ""},
                                         {"HOTPACK", hotpack},
                                         {"HOTPACK_ARENA", ""},
                                         {"SIMGPU_DEVICES", "2"},
                                         {"SIMGPU_PEERS", "0"},
                                         {"SIMGPU_MEMORY", memory}});
      EXPECT_EQ(outcome.code, 0) << memory << "\n" << outcome.err;
    }
  }
}

// While hotpack records, the driver serves the requests, each stream's from a pool of its own.
TEST(Contexts, EndWithTheirPoolsOfTheDriver) {
  const hotpack_test::TemporaryDirectory directory;
  const std::string counts = directory.path() + "/counts";
  const Outcome outcome = hotpack_test::RunProgram(
      {HOTPACK_COMMAND, "record", "--simulate", "-o", directory.path() + "/trace", "--",
       HOTPACK_TEST_DIR "/context_client", "pools"},
      {{"HOTPACK", ""}, {"LD_LIBRARY_PATH", HOTPACK_BINARY_DIR "/lib"}, {"SIMGPU_COUNT_FILE", counts}});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const std::string text = hotpack_test::ReadFile(counts);
  EXPECT_THAT(text, testing::HasSubstr("cuMemPoolCreate 5\n"));
  EXPECT_THAT(text, testing::HasSubstr("cuMemPoolDestroy 5\n"));
}

// `fail`: a clause of SIMGPU_FAIL. The checker judges.
Outcome RunContexts(const std::string& scenario, const std::string& fail) {
  const Outcome outcome = hotpack_test::RunProgram(
      {HOTPACK_COMMAND, "run", "--simulate", "--", HOTPACK_TEST_DIR "/contexts_client", scenario},
      {{"LD_LIBRARY_PATH", ""}, {"SIMGPU_MEMORY", "1G"}, {"SIMGPU_FAIL", fail}});
  EXPECT_EQ(outcome.code, 0) << fail << "\n" << outcome.err;
  EXPECT_THAT(outcome.err, testing::Not(testing::HasSubstr("REPORT"))) << fail;
  return outcome;
}

// Each of hotpack's changes of the context is refused in turn.
TEST(Contexts, WorkOfAnotherOneIsWaitedForWhereItCannotBeMadeCurrent) {
  for (int call = 0; call <= 6; ++call) {
    const std::string fail = call == 0 ? "" : "cuCtxPushCurrent@libhotpack_preload:" + std::to_string(call);
    EXPECT_EQ(RunContexts("other_work", fail).out, "the same memory\n") << fail;
  }
}

TEST(Contexts, OneThatCannotBeDestroyedKeepsItsMemory) {
  EXPECT_EQ(RunContexts("refused_end", "cuCtxDestroy:1").out, "refused\n");
  EXPECT_EQ(RunContexts("refused_end", "").out, "ended\n");
}

// The checker judges the order of uses, and the program itself what is held.
TEST(GreenContexts, NothingLeaksAndNothingDangles) {
  for (const char* scenario : {"memory", "own_streams", "default_streams", "last"}) {
    for (const char* hotpack : {"0", ""}) {
      const Outcome outcome = hotpack_test::RunProgram(
          {HOTPACK_COMMAND, "run", "--simulate", "--", HOTPACK_TEST_DIR "/green_client", scenario},
          {{"HOTPACK", hotpack}, {"LD_LIBRARY_PATH", ""}, {"SIMGPU_MEMORY", "1G"}});
      EXPECT_EQ(outcome.code, 0) << scenario << " HOTPACK=" << hotpack << "\n" << outcome.err;
      EXPECT_THAT(outcome.err, testing::Not(testing::HasSubstr("REPORT"))) << scenario;
    }
  }
}

}  // namespace
