// Each case (checker_order_cases.cc, checker_context_cases.cc, checker_block_cases.cc) gives the reports it must, and
// no others.
#include <gtest/gtest.h>

#include "tests/simgpu/reports.h"

namespace simgpu_test {
namespace {

constexpr int kReports = 97;

struct Expected {
  const char* name;
  const char* kinds;  // "": none
};

const Expected kExpected[] = {
    {"ReuseUnordered", "reuse-without-order"},
    {"ReusePartly", "reuse-without-order"},
    {"ReuseSameStream", ""},
    {"ReuseAfterEvent", ""},
    {"ReuseEventWrongWay", "reuse-without-order"},
    {"ReuseAfterStreamSync", ""},
    {"ReuseAfterOtherSync", "reuse-without-order"},
    {"ReuseAfterQuery", ""},
    {"ReuseAfterContextSync", ""},
    {"ReuseByCopy", "reuse-without-order"},
    {"ReuseBySet", "reuse-without-order"},
    {"ReuseByLibrary", "reuse-without-order"},
    {"ReuseEventTooEarly", "reuse-without-order"},
    {"ReuseAfterEventSync", ""},
    {"ReuseThroughThird", ""},
    {"ReuseBehindUnused", "reuse-without-order"},
    {"ReuseSecondStream", "reuse-without-order"},
    {"ReuseOneOfTwo", "reuse-without-order"},
    {"ReuseLegacyBlocking", ""},
    {"ReuseLegacyNonBlocking", "reuse-without-order"},
    {"ReuseDestroyedStream", "reuse-without-order"},
    {"ReuseAfterSyncCopy", ""},
    {"ReuseAfterPageableCopy", ""},
    {"ReuseAfterPinnedCopy", "reuse-without-order"},
    {"ContextRecordLegacy", ""},
    {"ContextRecordBlocking", ""},
    {"ContextRecordNonBlocking", ""},
    {"ContextRecordPerThread", ""},
    {"ContextRecordDestroyed", ""},
    {"ContextRecordSeveral", ""},
    {"ContextRecordTooEarly", "reuse-without-order"},
    {"ContextRecordNotWaitedFor", "reuse-without-order"},
    {"ContextRecordOfOther", "reuse-without-order"},
    {"ContextRecordSync", ""},
    {"ContextRecordQuery", ""},
    {"ContextRecordReplaced", "reuse-without-order"},
    {"ContextWaitLegacy", ""},
    {"ContextWaitBlocking", ""},
    {"ContextWaitNonBlocking", ""},
    {"ContextWaitPerThread", ""},
    {"ContextWaitLaterStream", ""},
    {"ContextWaitLaterThread", ""},
    {"ContextWaitLaterStreamOldNumber", ""},
    {"ContextWaitTwice", ""},
    {"ContextWaitIsNotInherited", "reuse-without-order"},
    {"ContextWaitNotRecorded", "reuse-without-order"},
    {"ContextWaitTooEarly", "reuse-without-order"},
    {"ContextWaitTooLate", "reuse-without-order"},
    {"ContextWaitAddsNothing", "reuse-without-order"},
    {"ContextWaitOfOther", "reuse-without-order"},
    {"ContextWaitForOther", ""},
    {"ContextWaitThenEdge", ""},
    {"DeviceReset", ""},
    {"ContextEnds", ""},
    {"OtherContextEnds", ""},
    {"OtherContextEndsUnderABlock", "taken-away"},
    {"Overlap", "overlap"},
    {"OverlapSame", "overlap"},
    {"OverlapInside", "overlap"},
    {"Adjacent", ""},
    {"DoubleFree", "double-free"},
    {"RefusedFree", ""},
    {"RefusedFreeThenTwo", "double-free"},
    {"RefusedFreeKeepsHistory", "reuse-without-order"},
    {"RefusedFreeKeepsUses", "reuse-without-order"},
    {"RefusedFreeWasGivenAway", "overlap"},
    {"RefusedDoubleFree", "double-free use-after-free"},
    {"KeptOfAnother", "use-after-free"},
    {"FreeInCapture", ""},
    {"UnknownFree", "unknown-free"},
    {"DriverDoubleFree", "double-free"},
    {"DriverUnknownFree", "unknown-free"},
    {"UseAfterFree", "use-after-free"},
    {"UseAfterFreeCopy", "use-after-free"},
    {"UseBeyondEnd", "use-after-free"},
    {"UseAfterDriverFree", "use-after-free"},
    {"UseAfterFreeAsync", "use-after-free"},
    {"StructGarbage", ""},
    {"StructUse", "reuse-without-order"},
    {"StridedLeftovers", ""},
    {"StridedFirst", "reuse-without-order"},
    {"StridedSecond", "reuse-without-order"},
    {"StridedCaptured", "reuse-without-order"},
    {"StridedNot", "reuse-without-order"},
    {"StridedNoDimension", "reuse-without-order"},
    {"StridedSmallNumbers", "reuse-without-order"},
    {"StridedNoAddresses", "reuse-without-order"},
    {"ListLeftovers", ""},
    {"ListOfCuda12", "reuse-without-order"},
    {"ListOfCuda13", "reuse-without-order"},
    {"ListOfScalars", "reuse-without-order"},
    {"ListOfFusedUpdates", "reuse-without-order"},
    {"ListOfSteps", "reuse-without-order"},
    {"ListOfConcatenated", "reuse-without-order"},
    {"ListNot", "reuse-without-order"},
    {"ExtraBufferUse", "reuse-without-order"},
    {"UnmapInUse", "unmap-in-use"},
    {"UnmapAfterSync", ""},
    {"UnmapOtherPage", ""},
    {"UnmapOwnUse", "unmap-in-use"},
    {"UnmapLive", "taken-away"},
    {"UseUnmapped", "unmapped"},
    {"UseHole", "unmapped"},
    {"NoAccess", "no-access"},
    {"NoAccessOwn", "no-access"},
    {"OwnMapping", ""},
    {"DriverBlocks", ""},
    {"PoolBlockOtherStream", ""},
    {"PoolBlockSyncFree", "reuse-without-order"},
    {"OwnPoolSameStream", ""},
    {"OwnPoolOtherStream", ""},
    {"OwnPoolThirdStream", "reuse-without-order"},
    {"OwnPoolUseAfterFree", "use-after-free"},
    {"OwnPoolTrimIsNoOrder", "reuse-without-order"},
    {"OwnPoolDestroyIsNoOrder", "reuse-without-order"},
    {"ArenaOfOneAllocation", ""},
    {"ArenaOfOneAllocationBad", "use-after-free"},
    {"GraphClean", ""},
    {"GraphUnordered", "reuse-without-order"},
    {"GraphMemoryGivenAway", "use-after-free"},
    {"GraphOutlivesItsBlocks", ""},
    {"GraphMemoryGivenAwayOthers", "use-after-free"},
    {"ManyReports", "unknown-free"},
};

std::string Program() { return std::string(HOTPACK_BINARY_DIR) + "/tests/simgpu_checker_cases"; }

class CheckerCase : public testing::TestWithParam<Expected> {};

TEST_P(CheckerCase, GivesItsReports) {
  const CheckedOutcome outcome = RunChecked(Program() + " " + GetParam().name);
  EXPECT_EQ(outcome.kinds, GetParam().kinds) << outcome.err;
  EXPECT_EQ(outcome.code, outcome.reports.empty() ? 0 : kReports) << outcome.err;
}

TEST_P(CheckerCase, IsSilentWhenSwitchedOff) {
  const CheckedOutcome outcome = RunChecked(Program() + " " + GetParam().name, "SIMGPU_CHECK=0");
  EXPECT_EQ(outcome.kinds, "");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

INSTANTIATE_TEST_SUITE_P(All, CheckerCase, testing::ValuesIn(kExpected),
                         [](const testing::TestParamInfo<Expected>& c) { return std::string(c.param.name); });

// SIMGPU_DEVICES=2: kernels of the second device use memory of the first.
TEST(CheckerOfTwoDevices, KernelsNeedAccess) {
  const std::pair<const char*, const char*> cases[] = {{"PeerKernelMapped", "no-peer-access"},
                                                       {"PeerKernelMappedWithAccess", ""},
                                                       {"PeerKernelOrdinary", "no-peer-access"},
                                                       {"PeerKernelOrdinaryEnabled", ""}};
  for (const auto& [name, kinds] : cases) {
    EXPECT_EQ(RunChecked(Program() + " " + name, "SIMGPU_DEVICES=2").kinds, kinds) << name;
    EXPECT_EQ(RunChecked(Program() + " " + name, "SIMGPU_DEVICES=2 SIMGPU_ACCESS=0").kinds, "") << name;
  }
}

TEST(Reports, AreAllInTheFileAndTwentyOnStderr) {
  const CheckedOutcome outcome = RunChecked(Program() + " ManyReports");
  EXPECT_EQ(outcome.reports.size(), 50u);
  size_t shown = 0;
  for (size_t at = 0; (at = outcome.err.find("simgpu: REPORT", at)) != std::string::npos; ++at) ++shown;
  EXPECT_EQ(shown, 20u);
  EXPECT_NE(outcome.err.find(": 50 reports"), std::string::npos) << outcome.err;
}

TEST(Reports, LeaveAFailingProgramsStatusAlone) {
  const CheckedOutcome outcome = RunChecked(Program() + " OwnStatus");
  EXPECT_EQ(outcome.code, 5);
  EXPECT_EQ(outcome.reports.size(), 1u);
}

TEST(Reports, AreWrittenBeforeUnderscoreExit) {
  const CheckedOutcome outcome = RunChecked(Program() + " FastExit");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.reports.size(), 1u);
}

}  // namespace
}  // namespace simgpu_test
