// UCX on the simulated device. It learns the same of a block as without hotpack, except that no process can open it by
// a legacy handle. UCX asks for that first, and then sends copies. Its own staging buffers are the driver's.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/preload/simulate.h"

namespace {

using hotpack_test::Simulate;
using hotpack_test::SimulateResult;
using testing::HasSubstr;
using testing::Not;

SimulateResult RunUcx(const std::map<std::string, std::string>& more) {
  const std::string here = HOTPACK_TEST_DIR;
  return Simulate({here + "/ucx_client", here + "/libuct_cuda.so.0", here + "/libucm_cuda.so.0"}, more);
}

void Replace(std::string* text, const std::string& from, const std::string& to) {
  const size_t at = text->find(from);
  ASSERT_NE(at, std::string::npos) << from << " in\n" << *text;
  text->replace(at, from.size(), to);
}

TEST(Ucx, LearnsTheSameOfABlock) {
  const SimulateResult off = RunUcx({{"HOTPACK", "0"}}), on = RunUcx({});
  ASSERT_EQ(off.outcome.code, 0) << off.outcome.err;
  ASSERT_EQ(on.outcome.code, 0) << on.outcome.err;
  EXPECT_THAT(off.outcome.out,
              HasSubstr("plain: register 0, type 2, managed 0, device 0, whole 1, dma-buf 0, mapped 0"));
  EXPECT_THAT(off.outcome.out, HasSubstr("staging: 3 of 3 direct\nsignal: 7, 2 1\nhooks: whole 1, 3 buffers\n"));
  std::string expected = off.outcome.out;
  Replace(&expected, "plain: export 0, whole 1, legacy 1", "plain: export 0, whole 1, legacy 0");
  Replace(&expected, "small: export 0, whole 1, legacy 1", "small: export 0, whole 1, legacy 0");
  EXPECT_EQ(on.outcome.out, expected);
  EXPECT_THAT(on.outcome.err, Not(HasSubstr("REPORT")));
  EXPECT_THAT(on.outcome.err, Not(HasSubstr("lies in the arena"))) << "no export failed";
  EXPECT_EQ(on.stats["passed_through"], 3) << "the staging buffers";
  EXPECT_EQ(on.stats["requests"], 6) << "the program's blocks, those through the memory hooks too";
}

TEST(Ucx, StagesThroughTheHostWhereItsBuffersAreServed) {
  const SimulateResult result = RunUcx({{"HOTPACK_DRIVER_CALLERS", "none"}});
  ASSERT_EQ(result.outcome.code, 0) << result.outcome.err;
  EXPECT_THAT(result.outcome.out, HasSubstr("staging: 0 of 3 direct\n"));
}

}  // namespace
