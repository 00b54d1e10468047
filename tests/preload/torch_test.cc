// libhotpack_torch.so, as PyTorch uses it: with libhotpack.so alone, and under the preload. On the simulated device.
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/preload/simulate.h"

namespace {

using hotpack_test::Outcome;
using hotpack_test::ReadFile;
using hotpack_test::TemporaryDirectory;

std::string Seed() {
  const char* given = std::getenv("HOTPACK_TEST_SEED");
  return given != nullptr ? given : std::to_string(std::random_device()());
}

struct Result {
  Outcome outcome;
  std::string reports;  // of the checker
  std::string calls;    // NAME CALLS, a line each
};

Result RunClient(const std::string& how, const std::string& mode, const std::string& seed) {
  const TemporaryDirectory directory;
  std::map<std::string, std::string> environment = {{"SIMGPU_COUNT_FILE", directory.path() + "/calls"},
                                                    {"SIMGPU_DEVICES", "2"},
                                                    {"HOTPACK", ""},
                                                    {"HOTPACK_ARENA", ""}};
  const std::string client = HOTPACK_TEST_DIR "/torch_client", libraries = HOTPACK_BINARY_DIR "/lib";
  Result result;
  if (how == "preload") {
    environment["LD_LIBRARY_PATH"] = libraries;
    result.outcome = hotpack_test::Simulate({client, mode, seed}, environment).outcome;
  } else {
    environment["SIMGPU_REPORT_FILE"] = directory.path() + "/reports";
    environment["LD_LIBRARY_PATH"] = HOTPACK_SIMGPU_LIBRARIES ":" + libraries;
    result.outcome = hotpack_test::RunProgram({client, mode, seed}, environment);
    result.reports = ReadFile(directory.path() + "/reports");
  }
  result.calls = ReadFile(directory.path() + "/calls");
  return result;
}

class TorchAllocator : public testing::TestWithParam<const char*> {
 protected:
  Result Passes(const std::string& mode) {
    const std::string seed = Seed();
    const Result result = RunClient(GetParam(), mode, seed);
    EXPECT_EQ(result.outcome.code, 0) << "seed " << seed << "\n" << result.outcome.err.substr(0, 4000);
    EXPECT_THAT(result.outcome.out, testing::HasSubstr("done"));
    EXPECT_THAT(result.reports, testing::Not(testing::HasSubstr("REPORT"))) << "seed " << seed;
    return result;
  }
};

TEST_P(TorchAllocator, CountsAsPyTorchDoes) { Passes("figures"); }
TEST_P(TorchAllocator, SaysWhyThereIsNoMemory) { Passes("oom"); }
TEST_P(TorchAllocator, KeepsThreadsApart) { Passes("threads"); }
TEST_P(TorchAllocator, KeepsPoolsApart) { Passes("pools"); }
TEST_P(TorchAllocator, KeepsPoolsToTheLimit) { Passes("full"); }
TEST_P(TorchAllocator, RemembersItsHistory) { Passes("history"); }
TEST_P(TorchAllocator, ServesALoopByScript) { Passes("loop"); }
TEST_P(TorchAllocator, ServesSeveralDevices) { Passes("devices"); }

// By events: the host never waits for a stream.
TEST_P(TorchAllocator, OrdersStreamsByEvents) {
  const Result result = Passes("streams");
  EXPECT_THAT(result.calls, testing::HasSubstr("cuEventRecord "));
  EXPECT_THAT(result.calls, testing::Not(testing::HasSubstr("cuStreamSynchronize ")));
}

INSTANTIATE_TEST_SUITE_P(How, TorchAllocator, testing::Values("alone", "preload"),
                         [](const auto& how) { return std::string(how.param); });

}  // namespace
