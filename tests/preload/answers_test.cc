// Programs that ask about their memory or run out of it, on the simulated device, with hotpack and without.
#include <map>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/subprocess.h"

namespace {

using hotpack_test::Outcome;
using testing::ContainsRegex;
using testing::HasSubstr;

Outcome RunClient(const std::string& scenario, const std::string& way,
                  const std::map<std::string, std::string>& more = {}) {
  std::map<std::string, std::string> environment = {
      {"HOTPACK", ""}, {"LD_LIBRARY_PATH", ""}, {"SIMGPU_MEMORY", "256M"}};
  for (const auto& [name, value] : more) environment[name] = value;
  return hotpack_test::RunProgram(
      {HOTPACK_COMMAND, "run", "--simulate", "--", HOTPACK_TEST_DIR "/answers_client", scenario, way}, environment);
}

std::map<std::string, std::string> Lines(const std::string& text) {
  std::map<std::string, std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    lines[line.substr(0, line.find(' '))] = line.substr(line.find(' ') + 1);
  return lines;
}

size_t Count(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// Without the line that the command itself prints.
std::string Said(const Outcome& outcome) {
  std::istringstream in(outcome.err);
  std::string said;
  for (std::string line; std::getline(in, line);) {
    if (line.find("requests") == std::string::npos || line.find("out of memory") != std::string::npos)
      said += line + "\n";
  }
  return said;
}

class Answers : public testing::TestWithParam<std::tuple<const char*, const char*>> {};
INSTANTIATE_TEST_SUITE_P(All, Answers,
                         testing::Combine(testing::Values("link", "dlsym", "default", "proc"),
                                          testing::Values("vmm", "plain")),
                         [](const auto& param) {
                           return std::string(std::get<0>(param.param)) + "_" + std::get<1>(param.param);
                         });

TEST_P(Answers, AreThoseOfARunWithoutHotpack) {
  const auto [way, arena] = GetParam();
  const Outcome without = RunClient("answers", way, {{"HOTPACK", "0"}, {"SIMGPU_MEMORY", "4G"}});
  const Outcome with = RunClient("answers", way, {{"HOTPACK_ARENA", arena}, {"SIMGPU_MEMORY", "4G"}});
  ASSERT_EQ(without.code, 0) << without.err;
  ASSERT_EQ(with.code, 0) << with.err;
  const auto expected = Lines(without.out), seen = Lines(with.out);
  ASSERT_GT(expected.size(), 250u);
  ASSERT_EQ(expected.size(), seen.size());
  EXPECT_EQ(expected.at("free.three_blocks"), "20 MiB");
  EXPECT_EQ(expected.at("pool.mempool.one"), "default pool");
  for (const auto& [name, value] : expected) {
    if (name.starts_with("free.") && std::string(arena) == "plain") {  // it has a chunk more than it can use
      EXPECT_EQ(std::stoi(seen.at(name)), std::stoi(value) + 2) << name;
      continue;
    }
    // Memory of cuMemAlloc can be shared with other processes, memory of the arena cannot.
    const bool differs = name.find("ipc_capable") != std::string::npos && value == "1";
    EXPECT_EQ(seen.at(name), differs ? "0" : value) << name;
  }
}

class ByEachWay : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, ByEachWay, testing::Values("link", "dlsym", "default", "proc"),
                         [](const auto& param) { return std::string(param.param); });

TEST_P(ByEachWay, EveryBlockHasANumberOfItsOwn) {
  const Outcome outcome = RunClient("numbers", GetParam());
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

TEST_P(ByEachWay, WhatTheDriverLacksIsGivenBack) {
  const Outcome outcome = RunClient("retry", GetParam());
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(Count(outcome.err, "out of memory on device 0: cuMemCreate of 200 MiB is 144 MiB too much"), 1u)
      << outcome.err;
}

// The first attempt of each fails.
TEST_P(ByEachWay, EveryCallThatNeedsMemoryIsMadeAgain) {
  std::string fail;
  for (const char* name :
       {"cuMemAllocManaged", "cuMemPoolCreate", "cuArrayCreate", "cuArray3DCreate", "cuMipmappedArrayCreate",
        "cuModuleLoad", "cuModuleLoadData", "cuModuleLoadDataEx", "cuModuleLoadFatBinary", "cuLibraryLoadData",
        "cuLibraryLoadFromFile", "cuGraphInstantiate", "cuGraphInstantiateWithFlags", "cuGraphInstantiateWithParams"}) {
    fail += std::string(fail.empty() ? "" : ",") + name + ":1=2";
  }
  const Outcome outcome = RunClient("retry_all", GetParam(), {{"SIMGPU_FAIL", fail}});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, testing::Not(HasSubstr("out of memory")));
  EXPECT_NE(RunClient("retry_all", GetParam(), {{"SIMGPU_FAIL", fail}, {"HOTPACK", "0"}}).code, 0)
      << "the calls must fail";
}

TEST(Fragments, AreNotFree) {
  const Outcome outcome = RunClient("fragments", "link");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("out of memory on device 0: cuMemAlloc of 256 KiB is 256 KiB too much. "));
}

TEST(Trim, GivesIdleMemoryBack) {
  const Outcome outcome = RunClient("trim", "link");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

TEST(OutOfMemory, OneLineSaysWhoHasWhat) {
  const Outcome outcome = RunClient("out_of_memory", "link");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(Count(outcome.err, "out of memory"), 1u) << outcome.err;
  EXPECT_THAT(outcome.err,
              ContainsRegex(
                  "hotpack: out of memory on device 0: cuMemAlloc of 1048576 MiB is 1048320 MiB too much. Of 256 MiB, "
                  "[0-9]+ are free, this context's arena has [0-9]+ \\(0 live, 0 of these outside the plan; [0-9]+ "
                  "idle\\), other arenas of the process 0, the rest 0 \\(driver, other processes, 1 request passed "
                  "through\\). The job has no plan\n"));
}

// What the program does afterwards decides: it failed, so that is the last line's subject; or it got over it.
TEST(OutOfMemory, IsTheSubjectOfTheLastLine) {
  const auto run = [](const std::string& scenario, const std::string& end, const char* memory = "256M") {
    const std::string script = HOTPACK_TEST_DIR "/answers_client " + scenario + " link; " + end;
    return hotpack_test::RunProgram({HOTPACK_COMMAND, "run", "--simulate", "--", "sh", "-c", script},
                                    {{"HOTPACK", ""}, {"LD_LIBRARY_PATH", ""}, {"SIMGPU_MEMORY", memory}});
  };
  const Outcome failed = run("out_of_memory_at_the_end", "exit 3");
  EXPECT_EQ(failed.code, 3);
  EXPECT_THAT(failed.err, ContainsRegex("\nhotpack: out of memory before the first step was complete: 200.0 MiB asked, "
                                        "[0-9.]+ MiB free; live 100.0 MiB of 256.0 MiB; would help: a smaller batch, "
                                        "recomputation, or a device of 300.0 MiB or more; the program failed with exit "
                                        "code 3. Next: hotpack need -- sh "));
  const Outcome caught = run("out_of_memory_at_the_end", "exit 0");
  EXPECT_EQ(caught.code, 0);
  EXPECT_THAT(caught.err, ContainsRegex("\nhotpack: held at most .*; 1 request found no memory, of 200.0 MiB. Next"));
  EXPECT_THAT(
      run("out_of_memory_at_the_end", "exit 0", "64M").err,
      ContainsRegex("\nhotpack: .* left to the driver; [0-9]+ requests? found no memory, .*Next: hotpack doctor "));
  const Outcome went_on = run("out_of_memory", "exit 3");
  EXPECT_EQ(went_on.code, 3);
  EXPECT_THAT(went_on.err, ContainsRegex("\nhotpack: the program failed with exit code 3; until then held at most "
                                         ".*; 22 requests found no memory, the last one of 20.0 MiB"));
}

TEST(OutOfMemory, TheLineKnowsThePlan) {
  const Outcome outcome = RunClient("out_of_memory_on_plan", "link");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(Count(outcome.err, "out of memory"), 1u) << outcome.err;
  EXPECT_THAT(outcome.err,
              ContainsRegex("cuMemAlloc of 220 MiB is [0-9]+ MiB too much. .* has [0-9]+ \\(55 live, .*The job has "
                            "left its plan of 5[5-9] MiB 1 time, and follows it\n"));
}

TEST(OutOfMemory, TheDevicesOtherArenasGiveBack) {
  const Outcome outcome = RunClient("contexts", "link");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, testing::Not(HasSubstr("out of memory")));
}

TEST(OutOfMemory, AJobSurvivesWhenItsMemoryIsTaken) {
  for (const char* arena : {"vmm", "plain:128"}) {
    const Outcome outcome = RunClient("squeeze", "link", {{"HOTPACK_ARENA", arena}});
    if (std::string(arena) == "vmm") {
      EXPECT_EQ(outcome.code, 0) << outcome.err;
    } else {
      EXPECT_EQ(outcome.code, 1) << "a plain arena gives nothing back, so the memory cannot be taken";
    }
    EXPECT_THAT(outcome.err, testing::Not(HasSubstr("REPORT")));
  }
}

TEST(OutOfMemory, ACaptureIsNotDisturbed) {
  const Outcome outcome = RunClient("capture", "link");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

// Giving back while calls fail: no report of the checker, no crash; the program may see an error.
TEST(OutOfMemory, EveryFailingCallOnTheWayIsHarmless) {
  for (const char* call : {"cuMemUnmap", "cuMemRelease", "cuMemCreate", "cuMemMap", "cuMemSetAccess",
                           "cuCtxSynchronize", "cuMemGetInfo", "cuCtxGetDevice"}) {
    for (const char* when : {"1", "2", "3", "every:2", "1+"}) {
      for (const char* scenario : {"retry", "trim"}) {
        const Outcome outcome = RunClient(scenario, "link", {{"SIMGPU_FAIL", std::string(call) + ":" + when}});
        EXPECT_TRUE(outcome.code == 0 || outcome.code == 1) << call << ":" << when << "\n" << outcome.err;
        EXPECT_THAT(outcome.err, testing::Not(HasSubstr("REPORT"))) << call << ":" << when;
      }
    }
  }
}

TEST_P(ByEachWay, PeersHaveAccessWhenTheProgramSaysSo) {
  for (const char* scenario : {"peers_by_context", "peers_by_pool"}) {
    const Outcome outcome = RunClient(scenario, GetParam(), {{"SIMGPU_DEVICES", "2"}});
    EXPECT_EQ(outcome.code, 0) << scenario << "\n" << outcome.err;
    EXPECT_EQ(outcome.out, "before 0\nof the other 0\n") << "access where nobody asked for it";
  }
}

TEST(Ipc, IsLearntBySize) {
  for (const char* arena : {"vmm", "plain:128"}) {
    const Outcome outcome = RunClient("ipc", "link", {{"HOTPACK_ARENA", arena}});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.out, "first 1\n");
    EXPECT_EQ(Count(outcome.err, "cuIpcGetMemHandle"), 2u) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("HOTPACK_IPC=3145728\n"));
    EXPECT_THAT(outcome.err, HasSubstr("HOTPACK_IPC=3145728,7340032\n"));
  }
}

TEST(Ipc, SizesAreKnownInAdvance) {
  const Outcome outcome = RunClient("ipc", "link", {{"HOTPACK_IPC", "7340032,3145600"}});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "first 0\n");
  EXPECT_EQ(Said(outcome), "");
}

TEST(Ipc, ABadListGetsOneLine) {
  const Outcome outcome = RunClient("trim", "link", {{"HOTPACK_IPC", "4096,many"}});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err,
              HasSubstr("hotpack: HOTPACK_IPC=4096,many is not sizes in bytes with commas between; none is used\n"));
}

}  // namespace
