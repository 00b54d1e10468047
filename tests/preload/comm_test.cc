// A communication library that exports its buffers to other processes, on the simulated device. Its requests go to the
// driver from the first one on. The library is the same under each name.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/preload/simulate.h"

namespace {

using hotpack_test::Simulate;
using hotpack_test::SimulateResult;
using testing::HasSubstr;

constexpr char kNccl[] = HOTPACK_TEST_DIR "/libnccl.so.2";
constexpr char kOther[] = HOTPACK_TEST_DIR "/libcomm.so";

SimulateResult Connect(const char* library, const std::string& callers = "") {
  return Simulate({HOTPACK_TEST_DIR "/comm_client", library}, {{"HOTPACK_DRIVER_CALLERS", callers}});
}

// Three rounds of four channels. The library asks for four buffers a round and one dummy. The program asks for a block
// a round. From its own first export on, blocks of this size are the driver's.
constexpr int kDirect = 12, kOwn = 3;
constexpr char kAllDirect[] = "direct 12, exports 1 0 0\n";

void ExpectLeftToDriver(const SimulateResult& result) {
  ASSERT_EQ(result.outcome.code, 0) << result.outcome.err;
  EXPECT_THAT(result.outcome.out, HasSubstr(kAllDirect));
  EXPECT_THAT(result.outcome.err, testing::Not(HasSubstr("a block of 2097152 bytes")));
  EXPECT_EQ(result.stats["passed_through"], kDirect + 1 + kOwn - 1);
  EXPECT_EQ(result.stats["requests"], 2) << "the program's own requests are served until its export";
}

void ExpectServed(const SimulateResult& result) {
  ASSERT_EQ(result.outcome.code, 0) << result.outcome.err;
  EXPECT_THAT(result.outcome.out, HasSubstr("direct 0, exports 1 0 0\n"))
      << "the first export failed, and the library keeps that";
  EXPECT_THAT(result.outcome.err, HasSubstr("cuIpcGetMemHandle: a block of 2097152 bytes lies in the arena"));
}

TEST(Communication, NcclTransfersDirectlyFromTheFirstExportOn) { ExpectLeftToDriver(Connect(kNccl)); }

TEST(Communication, WithoutHotpackEveryChannelIsDirect) {
  const SimulateResult off = Simulate({HOTPACK_TEST_DIR "/comm_client", kNccl}, {{"HOTPACK", "0"}});
  EXPECT_EQ(off.outcome.out, "register 0\ndirect 12, exports 0 0 0\n") << off.outcome.err;
}

// Without the checker's preload, which calls the hooks in the library's place.
TEST(Communication, TheCallerMayCallTheHookItself) {
  for (const auto& [library, expected] :
       {std::pair{kNccl, kAllDirect}, std::pair{kOther, "direct 0, exports 1 0 0\n"}}) {
    const hotpack_test::Outcome outcome =
        hotpack_test::RunProgram({HOTPACK_TEST_DIR "/comm_client", library},
                                 {{"LD_PRELOAD", HOTPACK_PRELOAD}, {"LD_LIBRARY_PATH", HOTPACK_SIMGPU_LIBRARIES}});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr(expected)) << outcome.err;
  }
}

// NCCL tells mapped memory from memory of cuMemAlloc by IS_LEGACY_CUDA_IPC_CAPABLE. A block must look like the latter.
TEST(Communication, NcclRegistersTheProgramsBlocks) {
  EXPECT_THAT(Connect(kNccl).outcome.out, testing::StartsWith("register 0\n"));
  const hotpack_test::Outcome outcome =
      hotpack_test::RunProgram({HOTPACK_TEST_DIR "/comm_client", kNccl},
                               {{"LD_PRELOAD", HOTPACK_PRELOAD}, {"LD_LIBRARY_PATH", HOTPACK_SIMGPU_LIBRARIES}});
  EXPECT_THAT(outcome.out, testing::StartsWith("register 0\n"));
  // Other libraries learn that no handle is available.
  EXPECT_THAT(Connect(kOther).outcome.out, testing::StartsWith("register 1\n"));
}

TEST(Communication, AnotherLibraryIsServed) { ExpectServed(Connect(kOther)); }

TEST(Communication, TheListCanGrow) {
  ExpectLeftToDriver(Connect(kOther, "+libmpi*,libcomm.so"));
  ExpectLeftToDriver(Connect(kNccl, "+libcomm.so"));
}

TEST(Communication, TheListCanBeReplaced) {
  ExpectLeftToDriver(Connect(kOther, "libcomm*"));
  ExpectServed(Connect(kNccl, "none"));
  ExpectServed(Connect(kNccl, "libcomm*"));
}

TEST(Communication, AnEmptyListGetsOneLine) {
  const SimulateResult result = Connect(kNccl, "+,");
  EXPECT_THAT(result.outcome.err,
              HasSubstr("hotpack: HOTPACK_DRIVER_CALLERS=+, is not a list of patterns, or + and one"));
  ExpectLeftToDriver(result);
}

}  // namespace
