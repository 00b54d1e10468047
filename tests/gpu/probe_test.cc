// The command line of gpu_probe, and that it detects allocators with faults.
#include <gtest/gtest.h>

#include <algorithm>

#include "nlohmann/json.hpp"
#include "tests/support/subprocess.h"

namespace {

using hotpack_test::Outcome;
using nlohmann::json;

Outcome RunProbe(const std::vector<std::string>& arguments, std::map<std::string, std::string> more = {}) {
  std::vector<std::string> command = {GPU_PROBE};
  command.insert(command.end(), arguments.begin(), arguments.end());
  more.insert({{"LD_LIBRARY_PATH", SIMGPU_DIRECTORY}, {"HOTPACK", ""}, {"LD_PRELOAD", ""}});
  return hotpack_test::RunProgram(command, more);
}

std::string ResultOf(const Outcome& outcome, const std::string& name) {
  const json object = json::parse(outcome.out);
  for (const json& finding : object["findings"]) {
    if (finding["name"] == name) return finding["result"];
  }
  return "none";
}

TEST(GpuProbeTest, TheListHasEveryCase) {
  const Outcome outcome = RunProbe({"--list"});
  EXPECT_EQ(outcome.code, 0);
  for (const char* name : {"coverage", "libraries", "arena", "streams", "streams_per_thread", "free_sync", "capture",
                           "late_frees", "info", "vmm", "managed"}) {
    EXPECT_NE(outcome.out.find(std::string(name) + " "), std::string::npos) << name;
  }
}

TEST(GpuProbeTest, BadInputGetsOneLineAndCode2) {
  const std::vector<std::vector<std::string>> wrong = {{},
                                                       {"--case"},
                                                       {"--case", "nothing"},
                                                       {"--fast"},
                                                       {"--time-limit", "x", "--case", "vmm"},
                                                       {"--time-limit", "0", "--case", "vmm"},
                                                       {"--child", "nobody"}};
  for (const auto& arguments : wrong) {
    const Outcome outcome = RunProbe(arguments);
    EXPECT_EQ(outcome.code, 2) << testing::PrintToString(arguments);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
}

TEST(GpuProbeTest, WithoutADeviceItSkips) {
  const Outcome outcome = RunProbe({"--case", "vmm"}, {{"SIMGPU_DEVICES", "0"}});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(ResultOf(outcome, "vmm.device"), "skip");
}

TEST(GpuProbeTest, ACallThatFailsIsAFinding) {
  const Outcome outcome = RunProbe({"--case", "arena", "--quick"}, {{"SIMGPU_FAIL", "cuMemAlloc:50"}});
  EXPECT_EQ(outcome.code, 0) << outcome.err;  // a fact about the driver: hotpack is not there
  EXPECT_EQ(ResultOf(outcome, "arena.calls"), "differs");
}

TEST(GpuProbeTest, ADriverThatDiffersIsNotedDown) {
  const Outcome outcome =
      RunProbe({"--case", "vmm", "--quick"}, {{"SIMGPU_MEMORY", "1G"}, {"SIMGPU_FAIL", "cuMemSetAccess:10+"}});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(ResultOf(outcome, "vmm.granularity.minimum"), "pass");
  EXPECT_EQ(ResultOf(outcome, "vmm.calls"), "differs");
}

// The simulated device's own checker would report these faults first: it is off.
Outcome RunFaulty(const std::string& fault, const std::string& probe_case) {
  return RunProbe({"--case", probe_case, "--quick"},
                  {{"LD_PRELOAD", FAULTY_ALLOCATOR}, {"GPU_FAULT", fault}, {"SIMGPU_CHECK", "0"}});
}

TEST(GpuProbeTest, AnAllocatorThatAnswersNothingFailsCoverage) {
  const Outcome outcome = RunFaulty("", "coverage");
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_EQ(ResultOf(outcome, "coverage.cudaMalloc"), "fail");
  EXPECT_EQ(ResultOf(outcome, "coverage.cudaMallocManaged"), "pass");
}

TEST(GpuProbeTest, OverlappingBlocksFail) {
  const Outcome outcome = RunFaulty("overlap", "arena");
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_EQ(ResultOf(outcome, "arena.random.disjoint"), "fail");
  EXPECT_EQ(ResultOf(outcome, "arena.random.values"), "fail");
  EXPECT_EQ(ResultOf(outcome, "arena.random.aligned"), "pass");
  EXPECT_EQ(ResultOf(RunFaulty("overlap", "capture"), "capture.growing_meanwhile"), "fail");
}

TEST(GpuProbeTest, MisalignedBlocksFail) {
  const Outcome outcome = RunFaulty("misaligned", "arena");
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_EQ(ResultOf(outcome, "arena.repeated.aligned"), "fail");
  EXPECT_EQ(ResultOf(outcome, "arena.repeated.values"), "pass");
  EXPECT_EQ(ResultOf(outcome, "arena.repeated.planned"), "fail");
}

TEST(GpuProbeTest, RefusedReleasesFail) {
  const Outcome outcome = RunFaulty("lost", "streams");
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_EQ(ResultOf(outcome, "streams.calls"), "fail");
}

TEST(GpuProbeTest, WrongAnswersToWrongReleasesFail) {
  const Outcome outcome = RunFaulty("", "late_frees");
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_EQ(ResultOf(outcome, "late_frees.other_thread"), "pass");
  EXPECT_EQ(ResultOf(outcome, "late_frees.wrong.double_free"), "fail");
}

}  // namespace
