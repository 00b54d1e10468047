// Programs on the simulated device, started by `hotpack run --simulate`: they are served, and the checker reports
// nothing.
#include "tests/preload/simulate.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace {

using Result = hotpack_test::SimulateResult;
using hotpack_test::Simulate;

class Simulated : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, Simulated, testing::Values("link", "dlsym", "default", "proc"),
                         [](const auto& param) { return std::string(param.param); });

TEST_P(Simulated, ADriverProgram) {
  const Result result = Simulate({HOTPACK_TEST_DIR "/simulate_driver_client", GetParam()});
  EXPECT_EQ(result.outcome.code, 0) << result.outcome.err;
  EXPECT_EQ(result.stats["checker_reports"], 0);
  EXPECT_EQ(result.stats["requests"], 400);
  EXPECT_EQ(result.stats["passed_through"], 0);
}

// The shared runtime, and the one that is linked in: the hooks see the same requests.
class SimulatedRuntime : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, SimulatedRuntime, testing::Values("runtime", "static"),
                         [](const auto& param) { return std::string(param.param); });

TEST_P(SimulatedRuntime, AProgram) {
  const Result result = Simulate({std::string(HOTPACK_TEST_DIR "/simulate_") + GetParam() + "_client"});
  EXPECT_EQ(result.outcome.code, 0) << result.outcome.err;
  EXPECT_EQ(result.stats["checker_reports"], 0);
  EXPECT_EQ(result.stats["requests"], 121);
  EXPECT_EQ(result.stats["passed_through"], 0);
}

// nvcc's own way of linking, with our archive found first.
TEST(Simulated, AProgramOfNvccWithTheRuntimeLinkedIn) {
#ifndef HOTPACK_NVCC_STATIC
  GTEST_SKIP() << "nvcc was not found when this was configured";
#else
  const Result result = Simulate({HOTPACK_NVCC_STATIC});
  EXPECT_EQ(result.outcome.code, 0) << result.outcome.err;
  EXPECT_EQ(result.stats["checker_reports"], 0);
  EXPECT_EQ(result.stats["requests"], 12);  // two blocks and ten of a loop
  EXPECT_EQ(result.stats["passed_through"], 0);
#endif
}

// Order between streams, and memory held by a graph.
class SimulatedStreams : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, SimulatedStreams,
                         testing::Values("graph", "no_graph", "graph_of_other_thread", "two_contexts",
                                         "capture_ends_with_context", "record_use", "many_streams",
                                         "streams_come_and_go", "many_threads"),
                         [](const auto& param) { return std::string(param.param); });

TEST_P(SimulatedStreams, AProgram) {
  const Result result = Simulate({HOTPACK_TEST_DIR "/simulate_streams_client", GetParam()});
  EXPECT_EQ(result.outcome.code, 0) << result.outcome.err;
  EXPECT_EQ(result.stats["checker_reports"], 0);
  EXPECT_EQ(result.stats["passed_through"], 0);
}

// Checked and unchecked accesses are counted.
TEST(Simulated, KernelsAreCounted) {
  const Result result = Simulate({HOTPACK_TEST_DIR "/simulate_streams_client", "graph"});
  EXPECT_EQ(result.outcome.code, 0) << result.outcome.err;
  EXPECT_GT(result.stats["kernels_known"], 0);
  EXPECT_EQ(result.stats["kernels_not_known"], 0);
  EXPECT_EQ(result.stats["library_calls_told"], 0);
  EXPECT_EQ(result.stats["library_calls_not_told"], 0);
}

// Growth takes few handles, and holds hardly more than with one handle for every 2 MiB.
TEST(Simulated, GrowthTakesFewHandles) {
  const std::vector<std::string> program = {HOTPACK_TEST_DIR "/growth_client", std::to_string(64 << 10)};
  const Result large = Simulate(program, {{"SIMGPU_MEMORY", "80G"}, {"HOTPACK_HANDLE", ""}});
  ASSERT_EQ(large.outcome.code, 0) << large.outcome.err;
  EXPECT_EQ(large.stats["checker_reports"], 0);
  EXPECT_LE(large.stats["handles_created"], 2'500);
  EXPECT_EQ(large.stats["handles_mapped"], large.stats["handles_created"]);
  const Result single = Simulate(program, {{"SIMGPU_MEMORY", "80G"}, {"HOTPACK_HANDLE", "2"}});
  ASSERT_EQ(single.outcome.code, 0) << single.outcome.err;
  EXPECT_GE(single.stats["handles_created"], 32'000);
  const auto held = [](const Result& result) { return result.stats["reserved_peak"].get<double>(); };
  EXPECT_GE(held(single), 64.0 * (1 << 30));
  EXPECT_LE(held(large), 1.005 * held(single));
}

// A program that uses a block after it has released it: the report reaches the exit code and the figures.
TEST(Simulated, AReportMakesTheExitCodeNonzero) {
  const Result result = Simulate({HOTPACK_TEST_DIR "/simulate_bad_client"});
  EXPECT_NE(result.outcome.code, 0);
  EXPECT_GT(result.stats["checker_reports"], 0);
  EXPECT_THAT(result.outcome.err, testing::HasSubstr("the checker has "));
}

}  // namespace
