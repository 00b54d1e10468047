// libhotpack_torch.so, as PyTorch uses it: with libhotpack.so alone, and under the preload. On the simulated device.
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/preload/torch_run.h"

namespace {

using hotpack_test::TorchRun;

std::string Seed() {
  const char* given = std::getenv("HOTPACK_TEST_SEED");
  return given != nullptr ? given : std::to_string(std::random_device()());
}

class TorchAllocator : public testing::TestWithParam<const char*> {
 protected:
  TorchRun Passes(const std::string& mode) {
    const std::string seed = Seed();
    const TorchRun result = hotpack_test::RunTorchClient(GetParam(), {"torch_client", mode, seed});
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
  const TorchRun result = Passes("streams");
  EXPECT_THAT(result.calls, testing::HasSubstr("cuEventRecord "));
  EXPECT_THAT(result.calls, testing::Not(testing::HasSubstr("cuStreamSynchronize ")));
}

INSTANTIATE_TEST_SUITE_P(How, TorchAllocator, testing::Values("alone", "preload"),
                         [](const auto& how) { return std::string(how.param); });

}  // namespace
