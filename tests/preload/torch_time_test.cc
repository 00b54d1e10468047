// The time that hotpack's order between streams costs, in virtual time (SIMGPU_TIME): with libhotpack.so alone, and
// under the preload.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/preload/torch_run.h"

namespace {

using hotpack_test::TorchRun;

constexpr char kCosts[] =
    "call=0,cuMemset=0,memory=1,cuEventRecord=0,cuStreamWaitEvent=0,cuCtxSynchronize=0,cuEventQuery=0,cuMemAlloc=0,"
    "cuMemAddressReserve=0,cuMemCreate=0,cuMemMap=0,cuMemSetAccess=0,cuMemUnmap=0";

class TorchTime : public testing::TestWithParam<const char*> {
 protected:
  // Returns the longest of the later steps on the main stream, in units of a MiB's work.
  static double Longest(const std::string& mode, const std::string& edges = "avoid") {
    const TorchRun run = hotpack_test::RunTorchClient(
        GetParam(), {"torch_time_client", mode},
        {{"SIMGPU_TIME", kCosts}, {"HOTPACK_STREAM_EDGES", edges}, {"HOTPACK_WAIT_PLAN", "1"}});
    EXPECT_EQ(run.outcome.code, 0) << run.outcome.err.substr(0, 4000);
    EXPECT_THAT(run.outcome.out, testing::HasSubstr("done"));
    EXPECT_THAT(run.reports, testing::Not(testing::HasSubstr("REPORT")));
    const size_t at = run.outcome.out.find("ms ");
    return at == std::string::npos ? -1 : std::stod(run.outcome.out.substr(at + 3));
  }
};

// A use on another stream ends with an event at the release. An event recorded at the next request would stand for the
// 20 units of work that the other stream has had since.
TEST_P(TorchTime, ARecordedUseIsWaitedForAlone) {
  const double units = Longest("recorded");
  EXPECT_GE(units, 3);
  EXPECT_LE(units, 4.01);
}

// At least 95 % of the overlap: a step of 8 units, not of 16.
TEST_P(TorchTime, APrefetchStreamOverlapsWithCompute) {
  const double units = Longest("prefetch");
  EXPECT_GE(units, 7.99);
  EXPECT_LE(units, 8 + 0.05 * 8);
}

// The lowest plan lets activations and batches share addresses: most of the overlap is lost.
TEST_P(TorchTime, StreamsMayShareAddressesOnRequest) { EXPECT_GT(Longest("prefetch", "keep"), 10); }

// Requests move free pages only after a wait for the device, which is bounded: 10 ms, then 5, and so on. (Queries of an
// event let the time go on.) A wait for the context would take the whole 1000 s.
TEST_P(TorchTime, PagesThatCouldMoveAreNotWaitedForWithoutEnd) {
  setenv("HOTPACK_PAGE_WAIT", "10", 1);
  EXPECT_LT(Longest("posted"), 1000);
  unsetenv("HOTPACK_PAGE_WAIT");
}

// Memory that another stream released long ago is not waited for, whatever that stream does now. It has 20 units of
// work, which may end only after this stream's: a receive that was posted before the request that it answers.
TEST_P(TorchTime, LaterWorkIsNotWaitedFor) {
  EXPECT_LE(Longest("reuse"), 1.01);
  EXPECT_LE(Longest("first"), 1.01);
  EXPECT_LE(Longest("later"), 1.2);
}

// Without events at releases the request's event stands for all that the other stream has had to do since.
TEST_P(TorchTime, LaterWorkIsWaitedForOnRequest) {
  setenv("HOTPACK_RELEASE_EVENTS", "0", 1);
  EXPECT_GE(Longest("reuse"), 20);
  unsetenv("HOTPACK_RELEASE_EVENTS");
}

INSTANTIATE_TEST_SUITE_P(How, TorchTime, testing::Values("alone", "preload"),
                         [](const auto& how) { return std::string(how.param); });

// A pool that forbids inserted waits is the driver's: the other stream's 20 units are not waited for.
using PoolTime = TorchTime;
TEST_P(PoolTime, InsertsNoWaitsWhereThePoolForbidsThem) { EXPECT_EQ(Longest("pool"), 1); }
TEST_P(PoolTime, LaterWorkIsNotWaitedFor) {
  EXPECT_LE(Longest("driver_reuse"), 1.01);
  EXPECT_LE(Longest("driver_first"), 1.01);
  EXPECT_LE(Longest("driver_later"), 1.2);
}
INSTANTIATE_TEST_SUITE_P(How, PoolTime, testing::Values("preload"));

}  // namespace
