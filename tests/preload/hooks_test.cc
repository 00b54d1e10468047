// The hooks, as a program sees them: every scenario of preload_client.cc by every way to the driver.
#include <glob.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/persist/stats_file.h"
#include "tests/support/subprocess.h"

namespace {

using hotpack_test::Outcome;
using hotpack_test::RunProgram;
using hotpack_test::TemporaryDirectory;

std::map<std::string, std::string> Environment(const std::string& way) {
  const std::string stub = std::string(HOTPACK_TEST_DIR) + (way == "dlvsym" ? "/stub_versioned" : "/stub");
  return {{"LD_PRELOAD", hotpack_test::SanitizerPreload() + HOTPACK_PRELOAD},
          {"LD_LIBRARY_PATH", stub},
          {"HOTPACK", ""},
          {"HOTPACK_STATS_DIR", ""},
          {"HOTPACK_TRACE", ""},
          {"HOTPACK_FREE_SYNC", ""},
          {"ASAN_OPTIONS", "detect_leaks=0"}};
}

Outcome RunClient(const std::string& scenario, const std::string& way,
                  const std::map<std::string, std::string>& more = {}) {
  auto environment = Environment(way);
  for (const auto& [name, value] : more) environment[name] = value;
  return RunProgram({HOTPACK_TEST_DIR "/preload_client", scenario, way}, environment);
}

class Hooks : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(Hooks, Scenario) {
  const auto [scenario, way] = GetParam();
  const bool late = std::string(scenario) == "second_stream_late" || std::string(scenario) == "host_wait";
  const Outcome outcome = RunClient(scenario, way, {{"HOTPACK_RELEASE_EVENTS", late ? "0" : "1"}});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
}

INSTANTIATE_TEST_SUITE_P(
    All, Hooks,
    testing::Combine(testing::Values("same", "basic", "first_version", "pitch", "async", "pools", "one_stream",
                                     "second_stream", "second_stream_late", "host_wait", "host_wait_for_semaphore",
                                     "newest_work", "per_thread_handle", "per_thread_variant", "capture",
                                     "capture_per_thread", "first_use_at_a_capture", "threads", "eight_threads",
                                     "contexts", "asked_while_destroyed", "retained_while_released", "inert", "fork",
                                     "exit"),
                     testing::Values("link", "dlsym", "dlvsym", "default", "proc", "oldproc")),
    [](const auto& param) { return std::string(std::get<0>(param.param)) + "_" + std::get<1>(param.param); });

class Way : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, Way, testing::Values("link", "dlsym", "dlvsym", "default", "proc", "oldproc"),
                         [](const auto& param) { return std::string(param.param); });

TEST_P(Way, SwitchedOff) {
  const Outcome outcome = RunClient("off", GetParam(), {{"HOTPACK", "0"}});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(RunClient("off", GetParam()).code, 0) << "the scenario must tell on from off";
}

TEST_P(Way, ACallIsMadeAgainAsItWas) {
  const Outcome outcome = RunClient("load_again", GetParam());
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err,
              testing::StartsWith("hotpack: out of memory on device 0: cuModuleLoadDataEx found too little memory."));
}

TEST_P(Way, FreeSyncAlways) {
  const Outcome outcome = RunClient("always_sync", GetParam(), {{"HOTPACK_FREE_SYNC", "always"}});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(RunClient("always_sync", GetParam(), {{"HOTPACK_FREE_SYNC", "auto"}}).code, 0);
}

TEST(Options, ABadValueGetsOneLine) {
  const Outcome outcome = RunClient("one_stream", "link", {{"HOTPACK_FREE_SYNC", "maybe"}});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "hotpack: HOTPACK_FREE_SYNC=maybe is not auto or always; auto is used\n");
}

TEST(Hooks, AnUnknownKindOfArenaIsSaid) {
  for (const std::string kind : {"maybe", "plain:", "plain:0", "plain:-5", "plain:4x"}) {
    const Outcome outcome = RunClient("one_stream", "link", {{"HOTPACK_ARENA", kind}});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.err,
              "hotpack: HOTPACK_ARENA=" + kind + " is not auto, vmm, plain or plain:MEBIBYTES; auto is used\n");
  }
}

// Figures survive any end of the process.
class End : public testing::TestWithParam<std::pair<const char*, int>> {};
INSTANTIATE_TEST_SUITE_P(All, End,
                         testing::Values(std::pair{"end_return", 0}, std::pair{"end__exit", 0},
                                         std::pair{"end_signal", 137}, std::pair{"end_exception", 134}),
                         [](const auto& param) { return std::string(param.param.first); });

TEST_P(End, StatisticsAndTraceAreThere) {
  const TemporaryDirectory directory;
  const std::string trace = directory.path() + "/job.trace";
  const Outcome outcome =
      RunClient(GetParam().first, "link", {{"HOTPACK_STATS_DIR", directory.path()}, {"HOTPACK_TRACE", trace}});
  EXPECT_EQ(outcome.code, GetParam().second) << outcome.err;
  const auto processes = hotpack::ReadStatsDirectory(directory.path());
  ASSERT_EQ(processes.size(), 1u);
  // At an end that runs no code of ours, what came after the last flush is missing: 64 requests at most.
  EXPECT_LE(processes[0].stats.requests, 1000u);
  EXPECT_GT(processes[0].stats.requests,
            GetParam().second == 0 && GetParam().first == std::string("end_return") ? 999u : 935u);
  EXPECT_EQ(processes[0].arenas, 1u);
  EXPECT_EQ(processes[0].program, "preload_client");
  EXPECT_GT(hotpack_test::ReadFile(trace).size(), 0u);
}

TEST(Files, AProgramThatNeverAllocatesMakesNone) {
  const TemporaryDirectory directory;
  const Outcome outcome = RunClient(
      "inert", "link", {{"HOTPACK_STATS_DIR", directory.path()}, {"HOTPACK_TRACE", directory.path() + "/job.trace"}});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(hotpack::ReadStatsDirectory(directory.path()).size(), 0u);
  EXPECT_EQ(RunProgram({"ls", directory.path()}).out, "");
}

// The parent, the child that it forks (which allocates) and the one that it starts each have files of their own.
TEST(Files, EachProcessHasItsOwn) {
  const TemporaryDirectory directory;
  const std::string trace = directory.path() + "/job.trace";
  const Outcome outcome =
      RunClient("fork", "link", {{"HOTPACK_STATS_DIR", directory.path()}, {"HOTPACK_TRACE", trace}});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const auto processes = hotpack::ReadStatsDirectory(directory.path());
  ASSERT_EQ(processes.size(), 3u);
  EXPECT_EQ(processes[0].stats.requests, 2u);  // the program that was started
  EXPECT_EQ(processes[1].stats.requests, 1u);
  EXPECT_EQ(processes[2].stats.requests, 1u);
  EXPECT_GT(hotpack_test::ReadFile(trace).size(), 0u);
  int own_names = 0;
  for (const auto& process : processes) {
    own_names += hotpack_test::ReadFile(trace + "." + std::to_string(process.pid)).empty() ? 0 : 1;
  }
  EXPECT_EQ(own_names, 2);
}

TEST(Files, EachArenaHasItsOwn) {
  const TemporaryDirectory directory;
  const std::string trace = directory.path() + "/job.trace";
  const Outcome outcome =
      RunClient("contexts", "link", {{"HOTPACK_STATS_DIR", directory.path()}, {"HOTPACK_TRACE", trace}});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const auto processes = hotpack::ReadStatsDirectory(directory.path());
  ASSERT_EQ(processes.size(), 1u);
  EXPECT_EQ(processes[0].arenas, 3u);  // the primary context before and after the reset, and a created one
  EXPECT_EQ(processes[0].stats.requests, 5u);
  for (const char* suffix : {"", ".2", ".3"}) EXPECT_GT(hotpack_test::ReadFile(trace + suffix).size(), 0u) << suffix;
}

TEST(Files, AnUnwritablePlaceStopsNothing) {
  const Outcome outcome =
      RunClient("one_stream", "link", {{"HOTPACK_STATS_DIR", "/nowhere"}, {"HOTPACK_TRACE", "/nowhere/job.trace"}});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.err, testing::HasSubstr("hotpack: no statistics: cannot write in /nowhere\n"));
  EXPECT_THAT(outcome.err, testing::HasSubstr("hotpack: no trace: cannot write /nowhere/job.trace"));
}

// No file is made next to them. The folder /dev is host memory.
TEST(Files, ADeviceOrAFolderIsNoTrace) {
  const TemporaryDirectory directory;
  for (const std::string& trace : {std::string("/dev/null"), directory.path()}) {
    const Outcome outcome = RunClient("one_stream", "link", {{"HOTPACK_TRACE", trace}});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_THAT(outcome.err, testing::HasSubstr("hotpack: no trace: " + trace + " is no regular file\n"));
    glob_t found;
    EXPECT_EQ(glob((trace + ".*").c_str(), 0, nullptr, &found), GLOB_NOMATCH) << trace;
    globfree(&found);
  }
}

// Programs that have nothing to do with CUDA.
TEST(Bystanders, RunAsEver) {
  const std::map<std::string, std::string> environment = {
      {"LD_PRELOAD", hotpack_test::SanitizerPreload() + HOTPACK_PRELOAD}, {"ASAN_OPTIONS", "detect_leaks=0"}};
  EXPECT_EQ(RunProgram({"/bin/sh", "-c", "echo a | cat; ls / > /dev/null && exit 7"}, environment).code, 7);
  const Outcome python =
      RunProgram({"python3", "-c", "import ctypes, ssl, json; print(ctypes.CDLL(None).getpid() > 0)"}, environment);
  if (python.code != 127) {
    EXPECT_EQ(python.out, "True\n") << python.err;
  }
}

// A preload that also interposes cuMemAlloc_v2, in front of ours and behind it. It finds the next function by
// RTLD_NEXT, in the driver library by dlsym, or there by the function that it takes for the C library's dlsym.
class Company : public testing::TestWithParam<std::tuple<const char*, bool>> {};
INSTANTIATE_TEST_SUITE_P(All, Company,
                         testing::Combine(testing::Values("next", "handle", "versioned"), testing::Bool()),
                         [](const auto& param) {
                           return std::string(std::get<0>(param.param)) +
                                  (std::get<1>(param.param) ? "_before" : "_after");
                         });

TEST_P(Company, NobodyIsSkippedAndNothingGoesInCircles) {
  const auto [how, before] = GetParam();
  const std::string other = HOTPACK_TEST_DIR "/libinterposer.so";
  const std::string ours = HOTPACK_PRELOAD;
  const std::string preload = hotpack_test::SanitizerPreload() + (before ? other + ":" + ours : ours + ":" + other);
  for (const char* way : {"link", "dlsym", "proc"}) {
    const Outcome on = RunClient("basic", way, {{"LD_PRELOAD", preload}, {"INTERPOSER", how}});
    EXPECT_EQ(on.code, 0) << way << ": " << on.err;
    if (std::string(way) != "link") continue;
    // In front it sees all requests; behind us only the two that are left to the driver.
    EXPECT_THAT(on.err, testing::HasSubstr(before ? "interposer: 4 calls" : "interposer: 2 calls"));
    const Outcome off = RunClient("off", way, {{"LD_PRELOAD", preload}, {"INTERPOSER", how}, {"HOTPACK", "0"}});
    EXPECT_EQ(off.code, 0) << off.err;
    EXPECT_THAT(off.err, testing::HasSubstr("interposer: 1 calls"));
    const Outcome work = RunClient("per_thread_handle", way, {{"LD_PRELOAD", preload}, {"INTERPOSER", how}});
    EXPECT_EQ(work.code, 0) << work.err;
    EXPECT_THAT(work.err, testing::HasSubstr("2 launches"));
  }
}

// A library that is opened with RTLD_DEEPBIND prefers its own dependencies to every preload.
TEST(DeepBind, IsStripped) {
  if (!hotpack_test::SanitizerPreload().empty()) GTEST_SKIP() << "sanitizers refuse RTLD_DEEPBIND";
  const std::map<std::string, std::string> environment = Environment("link");
  const Outcome on = RunProgram({HOTPACK_TEST_DIR "/deepbind_client"}, environment);
  EXPECT_EQ(on.code, 0) << on.err;
  EXPECT_EQ(on.out, "served\n");
  auto off = environment;
  off["HOTPACK"] = "0";
  EXPECT_EQ(RunProgram({HOTPACK_TEST_DIR "/deepbind_client"}, off).out, "driver\n");
}

}  // namespace
