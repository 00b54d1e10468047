// Settings by environment, and how a process ends.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <fstream>

#include "tests/simgpu/reports.h"
#include "tests/support/sanitized.h"

namespace simgpu_test {
namespace {

CheckedOutcome Case(const std::string& name, const std::string& settings = "") {
  return RunChecked(std::string(HOTPACK_BINARY_DIR) + "/tests/simgpu_process_cases " + name, settings);
}

#define EXPECT_CLEAN(outcome)                              \
  do {                                                     \
    const CheckedOutcome clean_outcome = (outcome);        \
    EXPECT_EQ(clean_outcome.code, 0) << clean_outcome.err; \
    EXPECT_EQ(clean_outcome.kinds, "");                    \
  } while (false)

TEST(Process, BigDeviceOnASmallMachine) { EXPECT_CLEAN(Case("BigDevice", "SIMGPU_MEMORY=80G")); }
TEST(Process, LargeValuesTakeNoMemory) { EXPECT_CLEAN(Case("SmallValues", "SIMGPU_VALUES=small")); }
TEST(Process, OutOfMemoryIsExact) { EXPECT_CLEAN(Case("OutOfMemory", "SIMGPU_MEMORY=8M")); }
TEST(Process, PoolsGiveWay) { EXPECT_CLEAN(Case("PoolGivesWay", "SIMGPU_MEMORY=8M")); }
TEST(Process, NothingWorksBeforeInit) { EXPECT_CLEAN(Case("BeforeInit")); }
TEST(Process, ChildrenOfForkAreRefused) { EXPECT_CLEAN(Case("Forks")); }
TEST(Process, ForksBeforeInitAreNoMatter) { EXPECT_CLEAN(Case("ForksEarly")); }
TEST(Process, SeveralDevices) { EXPECT_CLEAN(Case("Devices", "SIMGPU_DEVICES=3")); }
TEST(Process, ManyThreads) { EXPECT_CLEAN(Case("Threads")); }
TEST(Process, ManyThreadsThatTakeTheirTime) { EXPECT_CLEAN(Case("Threads", "SIMGPU_DELAY=50")); }

TEST(Process, FailuresOnDemand) {
  EXPECT_CLEAN(Case("Fails", "SIMGPU_FAIL=cuMemCreate:3,cuMemAlloc:every:2,cuMemMap:2+=700,cuStreamCreate:1"));
}

TEST(Process, FailuresByCaller) {
  EXPECT_CLEAN(Case("FailsByCaller", "'SIMGPU_FAIL=any:5,cuMemAlloc@libcudart:2,any@!libcudart:7'"));
}

TEST(Process, BadSettingsAreOneLine) {
  for (const char* bad : {"SIMGPU_FAIL=cuMemAlloc",      "SIMGPU_FAIL=cuMemAlloc:0", "SIMGPU_FAIL=cuMemAlloc:every:x",
                          "SIMGPU_FAIL=cuMemAlloc:3=no", "SIMGPU_FAIL=any@:3",       "SIMGPU_FAIL=any@!:3",
                          "SIMGPU_DELAY=soon",           "SIMGPU_DELAY=-1",          "SIMGPU_DELAY=1000001",
                          "SIMGPU_MEMORY=lots",          "SIMGPU_MEMORY=1K",         "SIMGPU_MEMORY=-3G",
                          "SIMGPU_DEVICES=many",         "SIMGPU_VALUES=some",       "SIMGPU_TIME=yes",
                          "SIMGPU_TIME=kernel=",         "SIMGPU_TIME=kernel=-1",    "SIMGPU_TIME=pcie=0",
                          "SIMGPU_TIME=kernel=1+1",      "SIMGPU_TIME=compute=two",  "SIMGPU_TIME=@/no/such/file"}) {
    const CheckedOutcome outcome = Case("Start", bad);
    EXPECT_EQ(outcome.code, 2) << bad;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_NE(outcome.err.find("simgpu: SIMGPU_"), std::string::npos) << outcome.err;
  }
}

TEST(Process, NoDevice) {
  const CheckedOutcome outcome = Case("Start", "SIMGPU_DEVICES=0");
  EXPECT_EQ(outcome.code, 3);
  EXPECT_NE(outcome.err.find("gave 100"), std::string::npos) << "CUDA_ERROR_NO_DEVICE";
}

TEST(Process, CallsAfterTheEndAreRefused) {
  const CheckedOutcome outcome = Case("LateCalls");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "made after cuInit: 0\nmade before cuInit: 4\n");
}

TEST(Process, CountsCalls) {
  const std::string path = testing::TempDir() + "/simgpu_counts_" + std::to_string(getpid());
  EXPECT_CLEAN(Case("OutOfMemory", "SIMGPU_MEMORY=8M SIMGPU_COUNT_FILE=" + path));
  std::string counts = ReadFile(path);
  counts.insert(counts.begin(), '\n');
  EXPECT_NE(counts.find("\ncuMemAlloc 5\n"), std::string::npos) << counts;
  EXPECT_NE(counts.find("\ncuMemCreate 3\n"), std::string::npos) << counts;
  EXPECT_NE(counts.find("\ncuMemRelease 1\n"), std::string::npos) << counts;
  unlink(path.c_str());
}

// The clock is the calls' alone: five requests of 10 µs, one of which is refused, and the first call of all.
TEST(Process, WritesVirtualTime) {
  const std::string path = testing::TempDir() + "/simgpu_times_" + std::to_string(getpid());
  const std::string costs = path + ".costs";
  std::ofstream(costs) << "# all calls\ncall=0\ncuMemAlloc = 10, cuMemCreate=0\n";
  EXPECT_CLEAN(Case("OutOfMemory", "SIMGPU_MEMORY=8M SIMGPU_TIME=@" + costs + " SIMGPU_TIME_FILE=" + path));
  const std::string times = ReadFile(path);
  EXPECT_NE(times.find("\"cuMemAlloc\": {\"calls\": 5, \"ms\": 0.050000, \"waited_ms\": 0.000000}"), std::string::npos)
      << times;
  EXPECT_NE(times.find("\"makespan_ms\": "), std::string::npos) << times;
  unlink(path.c_str());
  unlink(costs.c_str());
}

TEST(Process, CountsCallers) {
  const std::string path = testing::TempDir() + "/simgpu_callers_" + std::to_string(getpid());
  EXPECT_CLEAN(Case("FailsByCaller",
                    "'SIMGPU_FAIL=any:5,cuMemAlloc@libcudart:2,any@!libcudart:7' SIMGPU_COUNT_CALLERS=1 "
                    "SIMGPU_COUNT_FILE=" +
                        path));
  const std::string counts = ReadFile(path);
  EXPECT_NE(counts.find("\ncuMemFree 2\n"), std::string::npos) << counts;
  EXPECT_NE(counts.find("\ncuMemFree@simgpu_process_cases 2\n"), std::string::npos) << counts;
  EXPECT_NE(counts.find("\ncuMemAlloc@simgpu_process_cases 1\n"), std::string::npos) << counts;
  EXPECT_NE(counts.find("\ncuMemAlloc@libcudart.so.13 "), std::string::npos) << counts;
  unlink(path.c_str());
}

TEST(Process, HostAccessToDeviceMemoryFaults) {
  const int status = Case("HostAccess").code;
#ifdef HOTPACK_SANITIZED
  EXPECT_NE(status, 0);  // the sanitizer has its own way of saying so
#else
  EXPECT_EQ(status, 128 + SIGSEGV);
#endif
}

}  // namespace
}  // namespace simgpu_test
