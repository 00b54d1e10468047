// Guarantees of PyTorch's caching allocator hold under libhotpack_torch.so: with libhotpack.so alone and under the
// preload, served by hotpack and left to the driver. On the simulated device, whose checker is the judge.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/preload/torch_run.h"

namespace {

using hotpack_test::TorchRun;
using testing::HasSubstr;
using testing::Not;
using Environment = std::map<std::string, std::string>;

struct Case {
  const char* name;
  const char* mode;
  Environment environment = {};
};

class TorchContract : public testing::TestWithParam<std::tuple<const char*, Case>> {
 protected:
  TorchRun Run() {
    const auto& [how, each] = GetParam();
    return hotpack_test::RunTorchClient(how, {"torch_contract_client", each.mode}, each.environment);
  }
};

TEST_P(TorchContract, Holds) {
  const TorchRun run = Run();
  EXPECT_EQ(run.outcome.code, 0) << run.outcome.err.substr(0, 4000);
  EXPECT_THAT(run.outcome.out, HasSubstr("done"));
  EXPECT_THAT(run.reports + run.outcome.err, Not(HasSubstr("REPORT")));
}

const Case kCases[] = {
    {"PoolUsedByTheDefaultStream", "pool"},
    {"PoolUsedByAStreamThatNobodyNamed", "unseen"},
    {"PoolLeftToTheDriver", "unseen", {{"HOTPACK", "0"}}},
    {"PoolRecorded", "unseen", {{"HOTPACK", "record"}}},
    {"PoolOfAFullArena", "unseen", {{"HOTPACK_ARENA", "plain:2"}}},
    {"PoolWithoutEventsOfContexts", "unseen", {{"SIMGPU_FAIL", "cuCtxRecordEvent:1+"}}},
    {"MemoryThatThePoolsHaveIdle", "reclaimed", {{"HOTPACK", "0"}, {"SIMGPU_MEMORY", "64M"}, {"SIMGPU_DEVICES", "1"}}},
    {"ReleasedBeforeTheSecondStream", "late"},
    {"StreamsThatEnd", "ended"},
    {"StreamOfAnotherOnesHandle", "returned"},
    {"StreamOfAnotherOnesHandleWithoutEventsAtReleases", "returned", {{"HOTPACK_RELEASE_EVENTS", "0"}}},
    {"PoolWithoutEventsAtReleases", "unseen", {{"HOTPACK_RELEASE_EVENTS", "0"}}},
    {"UseTold", "recorded"},
    {"UseToldLeftToTheDriver", "recorded", {{"HOTPACK", "0"}}},
    {"UseToldRecorded", "recorded", {{"HOTPACK", "record"}}},
    {"UseToldOfAFullArena", "recorded", {{"HOTPACK_ARENA", "plain:60"}}},
    {"UseToldOnAStreamLeftToTheDriver", "recorded_on_stream", {{"HOTPACK", "0"}}},
    {"UseToldOfAnotherDevice", "other_device"},
    {"UseToldOfAnotherDeviceLeftToTheDriver", "other_device", {{"HOTPACK", "0"}}},
    {"CaptureThatAsks", "captured_request"},
    {"CaptureThatAsksLeftToTheDriver", "captured_request", {{"HOTPACK", "0"}}},
    {"CaptureThatReleases", "captured_release"},
    {"CaptureThatReleasesLeftToTheDriver", "captured_release", {{"HOTPACK", "0"}}},
    {"CaptureInAnotherThread", "captured_elsewhere"},
    {"ManagedMemory",
     "overcommit",
     {{"SIMGPU_MEMORY", "64M"}, {"HOTPACK_OVERCOMMIT", "managed"}, {"SIMGPU_DEVICES", "1"}}},
};

INSTANTIATE_TEST_SUITE_P(Cases, TorchContract,
                         testing::Combine(testing::Values("alone", "preload"), testing::ValuesIn(kCases)),
                         [](const auto& each) {
                           return std::string(std::get<0>(each.param)) + std::get<1>(each.param).name;
                         });

// Without hooks, a capture that another thread begins in the middle of a call is not visible.
TEST(TorchContractCaptures, BeginWhileABlockIsReleased) {
  for (const char* hotpack : {"1", "0"}) {
    SCOPED_TRACE(std::string("HOTPACK=") + hotpack);
    const TorchRun run = hotpack_test::RunTorchClient("preload", {"torch_contract_client", "captured_meanwhile"},
                                                      {{"HOTPACK", hotpack}, {"SIMGPU_DELAY", "200"}});
    EXPECT_EQ(run.outcome.code, 0) << run.outcome.err.substr(0, 4000);
    EXPECT_THAT(run.outcome.out, HasSubstr("done"));
    EXPECT_THAT(run.reports + run.outcome.err, Not(HasSubstr("REPORT")));
  }
}

// An announced capture is visible without hooks, too.
TEST(TorchContractCaptures, BeginAgainWhileABlockIsReleased) {
  for (const char* how : {"alone", "preload"}) {
    SCOPED_TRACE(how);
    const TorchRun run = hotpack_test::RunTorchClient(how, {"torch_contract_client", "captured_again"},
                                                      {{"HOTPACK", "0"}, {"SIMGPU_DELAY", "200"}});
    EXPECT_EQ(run.outcome.code, 0) << run.outcome.err.substr(0, 4000);
    EXPECT_THAT(run.outcome.out, HasSubstr("done"));
    EXPECT_THAT(run.reports + run.outcome.err, Not(HasSubstr("REPORT")));
  }
}

// The cases above show something only if memory goes from stream to stream, served by the plan.
TEST(TorchContractServed, ByThePlanFromStreamToStream) {
  const TorchRun run = hotpack_test::RunTorchClient("alone", {"torch_contract_client", "unseen"});
  unsigned long long requests = 0, planned = 0, crossed = 0;
  ASSERT_EQ(sscanf(run.outcome.out.c_str(), "served %llu planned %llu crossed %llu", &requests, &planned, &crossed), 3);
  EXPECT_EQ(requests, 60u);
  EXPECT_GE(planned, 40u);
  EXPECT_GE(crossed, 20u);
  EXPECT_THAT(run.calls, HasSubstr("cuCtxRecordEvent "));
  EXPECT_THAT(run.calls, Not(HasSubstr("cuStreamSynchronize ")));
}

}  // namespace
