// Lives of processes, devices and contexts on the simulated device: every scenario ends as it should, and the checker
// reports nothing.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/preload/simulate.h"

namespace {

using Result = hotpack_test::SimulateResult;
using hotpack_test::Outcome;
using hotpack_test::Simulate;
using hotpack_test::TemporaryDirectory;

class Contexts : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, Contexts,
                         testing::Values("devices", "devices_in_threads", "contexts", "reset", "release",
                                         "destroy_live", "many_contexts", "destroy_refused", "retain_and_release"),
                         [](const auto& param) { return std::string(param.param); });

TEST_P(Contexts, Scenario) {
  const Result result = Simulate({HOTPACK_TEST_DIR "/lifecycle_contexts", GetParam()}, {{"SIMGPU_DEVICES", "2"}});
  EXPECT_EQ(result.outcome.code, 0) << result.outcome.err;
  EXPECT_EQ(result.stats["checker_reports"], 0) << result.outcome.err;
}

class Processes : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, Processes,
                         testing::Values("fork_ends", "fork_exec", "fork_storm", "fork_pitch", "spawn", "exit_static",
                                         "exit_handler", "exit_thread_local", "exit_beside_thread", "exit_from_thread",
                                         "exit_quick"),
                         [](const auto& param) { return std::string(param.param); });

TEST_P(Processes, Scenario) {
  const Result result = Simulate({HOTPACK_TEST_DIR "/lifecycle_processes", GetParam()});
  EXPECT_EQ(result.outcome.code, 0) << result.outcome.err;
  EXPECT_EQ(result.stats["checker_reports"], 0) << result.outcome.err;
}

// The same lives where the arena is one cuMemAlloc, which goes with its context.
TEST(PlainArena, TheSameLives) {
  const std::string contexts = HOTPACK_TEST_DIR "/lifecycle_contexts",
                    processes = HOTPACK_TEST_DIR "/lifecycle_processes";
  for (const auto& [program, scenario] :
       std::vector<std::pair<std::string, std::string>>{{contexts, "many_contexts"},
                                                        {contexts, "destroy_live"},
                                                        {contexts, "retain_and_release"},
                                                        {processes, "fork_ends"},
                                                        {processes, "exit_static"},
                                                        {processes, "exit_from_thread"}}) {
    const Result result = Simulate({program, scenario}, {{"HOTPACK_ARENA", "plain:256"}});
    EXPECT_EQ(result.outcome.code, 0) << scenario << ": " << result.outcome.err;
    EXPECT_EQ(result.stats["checker_reports"], 0) << scenario;
    EXPECT_GT(result.stats["requests"], 0) << scenario;
  }
}

// The arena goes with the context: one that is kept by mistake has addresses that the driver gives to the next.
TEST(PlainArena, RetainedAtTheLastRelease) {
  const Result result = Simulate({HOTPACK_TEST_DIR "/lifecycle_contexts", "retain_at_the_last_release"},
                                 {{"HOTPACK_ARENA", "plain:256"}, {"SIMGPU_DELAY", "1000"}});
  EXPECT_EQ(result.outcome.code, 0) << result.outcome.err;
  EXPECT_EQ(result.stats["checker_reports"], 0) << result.outcome.err;
}

// A library that comes late, with RTLD_DEEPBIND, into a program that knows nothing of CUDA: it is served all the same.
TEST(Libraries, DeepBindAndLate) {
  const Result result = Simulate({HOTPACK_TEST_DIR "/lifecycle_libraries", "deepbind"});
  EXPECT_EQ(result.outcome.code, 0) << result.outcome.err;
  EXPECT_EQ(result.stats["checker_reports"], 0);
  EXPECT_EQ(result.stats["requests"], 1);
  EXPECT_EQ(result.stats["passed_through"], 0);
}

// libhotpack.so (a framework's plugin) next to the preload: each serves its own calls, and both have figures.
TEST(Libraries, PluginAndPreload) {
  const Result result = Simulate({HOTPACK_TEST_DIR "/lifecycle_libraries", "plugin"});
  EXPECT_EQ(result.outcome.code, 0) << result.outcome.err;
  EXPECT_EQ(result.stats["checker_reports"], 0);
  EXPECT_EQ(result.stats["requests"], 200) << "those of the busier of the two: the plugin's";
  EXPECT_THAT(result.outcome.err, testing::HasSubstr("(and 100 requests of 1 other"));
}

// A program that makes a context, a stream and work, but never allocates, has the same results as without hotpack.
TEST(Bystanders, AreNotTouched) {
  const TemporaryDirectory directory;
  const auto calls = [&](const char* hotpack) {
    const std::string file = directory.path() + "/calls" + hotpack;
    const Result result = Simulate({HOTPACK_TEST_DIR "/lifecycle_processes", "untouched"},
                                   {{"SIMGPU_COUNT_FILE", file}, {"HOTPACK", hotpack}});
    EXPECT_EQ(result.outcome.code, 0) << result.outcome.err;
    EXPECT_THAT(result.outcome.err, testing::HasSubstr("no process asked for device memory"));
    std::ifstream in(file);
    std::map<std::string, int> counts;
    std::string name;
    for (int count = 0; in >> name >> count;) {
      if (name.rfind("cuGetProcAddress", 0) != 0) counts[name] = count;
    }
    return counts;
  };
  const auto without = calls("0");
  EXPECT_GT(without.size(), 4u);
  EXPECT_EQ(calls("1"), without);
}

// operator new fails at the n-th call inside the library: the program sees nothing of it.
TEST(HostMemory, NoneForTheLibrary) {
  const TemporaryDirectory directory;
  const std::string reports = directory.path() + "/reports";
  const auto run = [&](int n) {
    return hotpack_test::RunProgram({HOTPACK_TEST_DIR "/lifecycle_processes", "hungry"},
                                    {{"LD_PRELOAD", HOTPACK_WITNESS ":" HOTPACK_FAILING},
                                     {"LD_LIBRARY_PATH", HOTPACK_SIMGPU_LIBRARIES},
                                     {"SIMGPU_REPORT_FILE", reports},
                                     {"HOTPACK", ""},
                                     {"HOTPACK_TEST_FAIL_NEW", std::to_string(n)}});
  };
  int runs = 0;
  for (int n = 1;; n += 1 + n / 20, ++runs) {  // each of the first, then ever fewer
    const Outcome outcome = run(n);
    ASSERT_EQ(outcome.code, 0) << "operator new number " << n << ": " << outcome.err;
    if (outcome.err.empty()) break;
    ASSERT_EQ(outcome.err, "operator new failed\n") << n;
  }
  EXPECT_GT(runs, 50);
  EXPECT_THAT(hotpack_test::ReadFile(reports), testing::Not(testing::HasSubstr("REPORT")));
  printf("%d runs\n", runs);
}

// Processes drawn from a seed: allocate, free, threads, fork, exec, ends of contexts and devices, and every kind of
// end.
TEST(Drawn, OrdersOfForkExecAndExit) {
  const char* more = std::getenv("HOTPACK_TEST_ORDERS");
  for (int left = more != nullptr ? std::atoi(more) : 100; left > 0;
       left -= 100) {  // what fits into a program's time limit
    const Result result = Simulate({HOTPACK_TEST_DIR "/lifecycle_drawn", std::to_string(std::min(left, 100))});
    printf("%s", result.outcome.out.c_str());
    fflush(stdout);
    ASSERT_EQ(result.outcome.code, 0) << result.outcome.err.substr(0, 5000);
    ASSERT_EQ(result.stats["checker_reports"], 0) << result.outcome.err.substr(0, 5000);
  }
}

}  // namespace
