// The collector of kernel times under `hotpack run --simulate`, with the stand-in in libcupti's place: the trace's
// contents, and CUPTI's state at the end.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "profiler/trace_file.h"
#include "tests/support/subprocess.h"

namespace {

using hotpack::Launch;
using hotpack::LoadTrace;
using hotpack::TraceFile;
using hotpack_test::Outcome;
using hotpack_test::ReadFile;
using hotpack_test::TemporaryDirectory;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr char kClient[] = HOTPACK_CUPTI_TESTS "/client";
constexpr char kWithout[] = HOTPACK_CUPTI_TESTS "/client_without";
constexpr char kNew[] = HOTPACK_CUPTI_TESTS "/cuda13/libcupti.so.13";
constexpr char kOld[] = HOTPACK_CUPTI_TESTS "/cuda12/libcupti.so.12";

struct Result {
  Outcome outcome;
  TraceFile file;
  std::vector<TraceFile> more;        // of other contexts and processes
  std::map<std::string, long> cupti;  // the stand-in's log; empty without it

  std::vector<std::string> Lines() const {
    std::vector<std::string> lines;
    for (size_t at = 0, end; (end = outcome.err.find('\n', at)) != std::string::npos; at = end + 1) {
      lines.push_back(outcome.err.substr(at, end - at));
    }
    return lines;
  }
  std::string Name(const Launch& launch) const {
    return launch.name == hotpack::kNoName ? "" : file.notes.names.at(launch.name);
  }
  size_t Timed() const {
    return static_cast<size_t>(std::count_if(file.notes.launches.begin(), file.notes.launches.end(),
                                             [](const Launch& launch) { return launch.end_ns > 0; }));
  }
};

struct Setting {
  std::string words = "";          // CUPTI_STANDIN
  std::string standin = kNew;      // empty: none
  std::string iterations = "all";  // --cupti
  std::map<std::string, std::string> environment = {};
  bool trace = true;
};

Result Play(std::vector<std::string> program, const Setting& setting = {}) {
  const TemporaryDirectory directory;
  const std::string trace = directory.path() + "/trace", log = directory.path() + "/log";
  std::vector<std::string> command = {HOTPACK_COMMAND, "run", "--simulate", "--cupti", setting.iterations};
  if (setting.trace) command.insert(command.end(), {"--trace", trace});
  command.push_back("--");
  command.insert(command.end(), program.begin(), program.end());
  std::map<std::string, std::string> environment = {
      {"LD_PRELOAD", setting.standin}, {"LD_LIBRARY_PATH", ""},           {"HOTPACK", ""},
      {"CUDA_INJECTION64_PATH", ""},   {"NSYS_PROFILING_SESSION_ID", ""}, {"CUPTI_STANDIN", setting.words},
      {"CUPTI_STANDIN_LOG", log}};
  for (const auto& [name, value] : setting.environment) environment[name] = value;
  Result result;
  result.outcome = hotpack_test::RunProgram(command, environment);
  if (std::filesystem::exists(trace)) {
    auto loaded = LoadTrace(trace);
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    if (loaded.ok()) result.file = *std::move(loaded);
  }
  for (const auto& entry : std::filesystem::directory_iterator(directory.path())) {
    if (entry.path().filename().string().rfind("trace.", 0) != 0) continue;
    auto loaded = LoadTrace(entry.path());
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    if (loaded.ok()) result.more.push_back(*std::move(loaded));
  }
  std::ifstream lines(log);
  std::string name;
  for (long value; lines >> name >> value;) result.cupti[name] = value;
  return result;
}

// The client's steps, whole: their launches are where they were, with their names.
void ExpectSteps(const Result& result, size_t steps) {
  const std::vector<Launch>& launches = result.file.notes.launches;
  ASSERT_EQ(launches.size(), 3 * steps);
  ASSERT_EQ(result.file.trace.events.size(), 4 * steps);
  for (size_t i = 0; i < launches.size(); ++i) {
    const Launch& launch = launches[i];
    const size_t step = i / 3, which = i % 3;
    EXPECT_EQ(result.Name(launch), which == 0 ? "first_kernel" : which == 1 ? "second_kernel" : "memset") << i;
    EXPECT_EQ(launch.position, 4 * step + (which == 0 ? 1 : 2)) << i;
    const auto& events = result.file.trace.events;
    EXPECT_GE(launch.time_ns, events[launch.position - 1].time_ns) << i;
    EXPECT_LE(launch.time_ns, events[launch.position].time_ns) << i;
  }
}

void ExpectTimed(const Result& result) {
  uint64_t last_start = 0;
  for (const Launch& launch : result.file.notes.launches) {
    EXPECT_LT(launch.start_ns, launch.end_ns);
    EXPECT_GT(launch.start_ns + 100'000, launch.time_ns)
        << "work comes after its launch, but for the two clocks' difference";
    EXPECT_GT(launch.start_ns + 100'000, last_start) << "one stream: in order";
    last_start = launch.start_ns;
  }
}

void ExpectGivenBack(const Result& result) {
  auto cupti = result.cupti;
  EXPECT_EQ(cupti["subscribed"], 1);
  EXPECT_EQ(cupti["unsubscribed"], 1);
  EXPECT_EQ(cupti["kinds_on"], 0);
  EXPECT_EQ(cupti["calls_watched"], 0);
  EXPECT_EQ(cupti["buffers_out"], 0);
  EXPECT_EQ(cupti["disturbed"], 0);
  EXPECT_EQ(cupti["finalized"], 0);
}

// Nothing came of it, and one line says why; the program and its trace are as ever.
void ExpectNone(const Result& result, const std::string& why, size_t steps = 40) {
  EXPECT_EQ(result.outcome.code, 0) << result.outcome.err;
  ASSERT_EQ(result.Lines().size(), 2u) << result.outcome.err;
  EXPECT_THAT(result.Lines()[0], testing::StartsWith("hotpack: kernel times are not recorded: " + why));
  EXPECT_TRUE(result.file.notes.launches.empty());
  EXPECT_EQ(result.file.trace.events.size(), 4 * steps);
}

TEST(CuptiRun, EveryLaunchIsNotedWhereItWasWithItsTimes) {
  const Result result = Play({kClient, "loop", "40"});
  EXPECT_EQ(result.outcome.code, 0) << result.outcome.err;
  EXPECT_EQ(result.Lines().size(), 1u) << result.outcome.err;
  ExpectSteps(result, 40);
  ExpectTimed(result);
  ExpectGivenBack(result);
}

TEST(CuptiRun, WithTheLaunchCollectorEachLaunchIsThereOnce) {
  const Result result = Play({kClient, "loop", "40"}, {.environment = {{"HOTPACK_LAUNCHES", "1"}}});
  EXPECT_EQ(result.outcome.code, 0) << result.outcome.err;
  ExpectSteps(result, 40);
  ExpectTimed(result);
  for (size_t i = 0; i < result.file.notes.launches.size(); ++i) {
    const Launch& launch = result.file.notes.launches[i];
    ASSERT_EQ(launch.blocks, 1u) << i;
    const auto& asked = result.file.trace.events[4 * (i / 3) + (i % 3 == 0 ? 0 : 1)];
    EXPECT_EQ(result.file.notes.launch_blocks[launch.first_block], asked.id) << "the block that this launch was for";
  }
}

TEST(CuptiRun, WhereItIsTakenOneLineSaysByWhom) {
  const Result result = Play({kClient, "loop"}, {.words = "taken=CUPTI for PyTorch"});
  ExpectNone(result, "CUPTI is taken by CUPTI for PyTorch");
  auto cupti = result.cupti;
  EXPECT_EQ(cupti["kinds_on"] + cupti["calls_watched"] + cupti["flushes"] + cupti["forced_flushes"], 0);
}

TEST(CuptiRun, LostMidwayTheProgramGoesOn) {
  const Result result = Play({kClient, "loop", "2000"}, {.words = "lose=31"});
  EXPECT_EQ(result.outcome.code, 0);
  EXPECT_THAT(result.outcome.err,
              HasSubstr("hotpack: kernel times are recorded no further: another tool has taken CUPTI"));
  EXPECT_EQ(result.file.notes.launches.size(), 30u);
  EXPECT_EQ(result.file.trace.events.size(), 8000u);
  auto cupti = result.cupti;
  EXPECT_EQ(cupti["disturbed"], 0);
  EXPECT_EQ(cupti["kinds_on"], 6) << "they are somebody else's now";
}

TEST(CuptiRun, EndedMidwayTheProgramGoesOn) {
  const Result result = Play({kClient, "loop", "2000"}, {.words = "end=31"});
  EXPECT_EQ(result.outcome.code, 0);
  EXPECT_THAT(result.outcome.err, HasSubstr("another tool has taken CUPTI (CUPTI_ERROR_NOT_INITIALIZED)"));
  EXPECT_EQ(result.file.trace.events.size(), 8000u);
}

TEST(CuptiRun, AfterItsIterationsAnotherToolFindsItFree) {
  const Result result = Play({kClient, "second"}, {.iterations = "3"});
  EXPECT_EQ(result.outcome.code, 0) << result.outcome.err;
  EXPECT_EQ(result.outcome.out, "free\n");
  auto cupti = result.cupti;
  EXPECT_EQ(cupti["subscribed"], 2);
  EXPECT_EQ(cupti["unsubscribed"], 1);
  EXPECT_EQ(cupti["kinds_on"], 0);
  EXPECT_EQ(cupti["disturbed"], 0);
  const size_t launches = result.file.notes.launches.size(), steps = result.file.trace.events.size() / 4;
  EXPECT_LT(launches, 3 * (steps - 9)) << "the last ten steps are not profiled";
  EXPECT_GE(launches, 3u * (2 + 3)) << "two iterations to find the period, and three of the plan's";
  EXPECT_EQ(result.Timed(), launches);
}

TEST(CuptiRun, DroppedRecordsAreSaid) {
  const Result result = Play({kClient, "loop", "40"}, {.words = "drop=9"});
  EXPECT_EQ(result.outcome.code, 0);
  ExpectSteps(result, 40);  // the names of kernels come with their launches
  EXPECT_EQ(result.Timed(), 111u);
  EXPECT_THAT(result.outcome.err, HasSubstr("hotpack: CUPTI dropped 9 records"));
}

TEST(CuptiRun, LateRecordsFromOtherThreads) {
  const Result result = Play({kClient, "loop", "40"}, {.words = "late=300,thread"});
  EXPECT_EQ(result.outcome.code, 0);
  ExpectSteps(result, 40);
  EXPECT_EQ(result.Timed(), 120u);
  ExpectGivenBack(result);
}

TEST(CuptiRun, AnOlderLibraryWillDo) {
  const Result result = Play({kClient, "loop", "40"}, {.standin = kOld});
  EXPECT_EQ(result.Lines().size(), 1u) << result.outcome.err;
  ExpectSteps(result, 40);
  ExpectTimed(result);
  ExpectNone(Play({kClient, "loop"}, {.words = "taken=X", .standin = kOld}), "CUPTI is taken by another tool");
}

TEST(CuptiRun, WithoutLibcupti) {
  ExpectNone(Play({kWithout, "loop"}, {.standin = ""}), "libcupti.so.13 cannot be loaded");
}

TEST(CuptiRun, AnOldVersionOrADeviceThatMayNotBeProfiled) {
  ExpectNone(Play({kClient, "loop"}, {.words = "version=16"}), "this libcupti is of version 16;");
  ExpectNone(Play({kClient, "loop"}, {.words = "deny"}),
             "CUPTI cannot be used here (CUPTI_ERROR_INSUFFICIENT_PRIVILEGES)");
}

// NVIDIA's own, if it is installed: it finds no device that it knows and says so, and the program continues.
TEST(CuptiRun, NvidiasOwnOnTheSimulatedDevice) {
  const Result result = Play({kClient, "loop"}, {.standin = ""});
  ExpectNone(result, "");
}

TEST(CuptiRun, AnInjectedToolGoesFirst) {
  const Result result = Play({kClient, "loop"}, {.environment = {{"CUDA_INJECTION64_PATH", "/a/tool.so"}}});
  ExpectNone(result, "another tool is given by CUDA_INJECTION64_PATH");
  EXPECT_EQ(result.cupti.at("subscribed"), 0);
}

TEST(CuptiRun, WithoutATraceThereIsNothingToWriteTo) {
  const Result result = Play({kClient, "loop"}, {.trace = false});
  EXPECT_EQ(result.outcome.code, 0);
  EXPECT_THAT(result.Lines()[0], testing::StartsWith("hotpack: kernel times are not recorded: there is no trace"));
  EXPECT_EQ(result.cupti.at("subscribed"), 0);
}

TEST(CuptiRun, AForkedChildEndsAndTheParentGoesOn) {
  const Result result = Play({kClient, "fork"});
  EXPECT_EQ(result.outcome.code, 0) << result.outcome.err;
  ExpectSteps(result, 40);
  ExpectTimed(result);
  ExpectGivenBack(result);
}

TEST(CuptiRun, WhatArrivedBeforeASuddenEndIsInTheTrace) {
  for (const auto& [name, code] : {std::pair{"end", 0}, std::pair{"killed", 128 + 9}}) {
    const Result result = Play({kClient, name});
    EXPECT_EQ(result.outcome.code, code) << name;
    ExpectSteps(result, 20);
    ExpectTimed(result);
  }
}

TEST(CuptiRun, TheEndOfAContextHandsOverFirst) {
  const Result result = Play({kClient, "context"});
  EXPECT_EQ(result.outcome.code, 0) << result.outcome.err;
  ExpectSteps(result, 20);
  ExpectTimed(result);
  ExpectGivenBack(result);
}

TEST(CuptiRun, AGraphsLaunchIsOnePieceOfWork) {
  const Result result = Play({kClient, "graph"});
  EXPECT_EQ(result.outcome.code, 0) << result.outcome.err;
  std::vector<std::string> names;
  for (const Launch& launch : result.file.notes.launches) names.push_back(result.Name(launch));
  EXPECT_THAT(names, ElementsAre("graph", "graph", "graph", "graph", "graph")) << "what was captured did not run";
  ExpectTimed(result);
  ExpectGivenBack(result);
}

TEST(CuptiRun, ThreadsAndAnEndInTheMidstOfIt) {
  Result result = Play({kClient, "threads"}, {.words = "thread"});
  EXPECT_EQ(result.outcome.code, 0) << result.outcome.err;
  EXPECT_EQ(result.file.notes.launches.size(), 453u);
  EXPECT_EQ(result.Timed(), 453u);
  ExpectGivenBack(result);
  result = Play({kClient, "busy"});
  EXPECT_EQ(result.outcome.code, 0) << result.outcome.err;
  EXPECT_GE(result.Timed(), 150u);
  EXPECT_EQ(result.cupti["unsubscribed"], 1);
  EXPECT_EQ(result.cupti["kinds_on"], 0);
  EXPECT_LE(result.cupti["buffers_out"], 1) << "a launch that was under way may have asked for one more";
}

// Without the simulated device's witness, which answers every search for a function.
TEST(CuptiRun, WhatCuptiTakesForItselfIsNotTheProgramS) {
  const TemporaryDirectory directory;
  const std::string trace = directory.path() + "/trace";
  const Outcome outcome =
      hotpack_test::RunProgram({kClient, "loop", "40"}, {{"LD_PRELOAD", std::string(HOTPACK_PRELOAD) + ":" + kNew},
                                                         {"LD_LIBRARY_PATH", HOTPACK_SIMGPU},
                                                         {"CUPTI_STANDIN", "allocate"},
                                                         {"HOTPACK_TRACE", trace},
                                                         {"HOTPACK_CUPTI", "all"}});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  Result result;
  auto loaded = LoadTrace(trace);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  result.file = *std::move(loaded);
  ExpectSteps(result, 40);
}

TEST(CuptiRun, WhatTheDriverGivesIsNoted) {
  // Blocks of this size are left to the driver.
  const Result result = Play({kClient, "loop", "10"}, {.environment = {{"HOTPACK_IPC", "1048576"}}});
  EXPECT_EQ(result.outcome.code, 0) << result.outcome.err;
  const auto& memory = result.file.notes.memory;
  ASSERT_EQ(memory.size(), 20u);
  for (size_t i = 0; i < memory.size(); ++i) {
    EXPECT_EQ(memory[i].released, i % 2 == 1);
    EXPECT_EQ(memory[i].address, memory[i - i % 2].address);
    if (i % 2 == 0) {
      EXPECT_EQ(memory[i].bytes, 1u << 20);
    }
  }
}

TEST(CuptiRun, EachDevicesLaunchesAreInItsRecordingWithTheirTimes) {
  for (const char* launches : {"", "1"}) {
    Result result =
        Play({kClient, "devices"}, {.environment = {{"SIMGPU_DEVICES", "2"}, {"HOTPACK_LAUNCHES", launches}}});
    EXPECT_EQ(result.outcome.code, 0) << result.outcome.err;
    ASSERT_EQ(result.more.size(), 1u);
    for (const char* name : {"of_the_first", "of_the_second"}) {
      EXPECT_EQ(result.file.notes.launches.size(), 20u) << name;
      EXPECT_EQ(result.Timed(), 20u) << name;
      for (const Launch& launch : result.file.notes.launches) EXPECT_EQ(result.Name(launch), name);
      result.file = result.more[0];
    }
  }
}

TEST(CuptiRun, AChildThatIsTheFirstToUseTheDeviceIsProfiledToo) {
  Result result = Play({kClient, "fork_first"});
  EXPECT_EQ(result.outcome.code, 0) << result.outcome.err;
  ASSERT_EQ(result.more.size(), 1u);
  for (int process = 0; process < 2; ++process) {
    ExpectSteps(result, 20);
    EXPECT_EQ(result.Timed(), 60u);
    result.file = result.more[0];
  }
}

TEST(CuptiRun, WhereTheTraceCannotBeWrittenCuptiIsLeftAlone) {
  const TemporaryDirectory directory;
  const std::string log = directory.path() + "/log";
  const Outcome outcome =
      hotpack_test::RunProgram({kClient, "loop", "10"}, {{"LD_PRELOAD", std::string(HOTPACK_PRELOAD) + ":" + kNew},
                                                         {"LD_LIBRARY_PATH", HOTPACK_SIMGPU},
                                                         {"CUPTI_STANDIN_LOG", log},
                                                         {"HOTPACK_TRACE", directory.path() + "/none/trace"},
                                                         {"HOTPACK_CUPTI", "all"}});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("no trace: cannot write"));
  EXPECT_THAT(ReadFile(log), HasSubstr("subscribed 0\n"));
}

TEST(CuptiRun, WrongValuesAreSaid) {
  for (const char* wrong : {"0", "-1", "some", "3x", "12345678901"}) {
    const Result result = Play({kClient, "loop"}, {.iterations = wrong});
    EXPECT_EQ(result.outcome.code, 2);
    EXPECT_EQ(result.outcome.err,
              std::string("hotpack run: --cupti ") + wrong + ": not a number of iterations, or all\n");
  }
}

// A training program of nvcc's: every kernel has a name of its kernels, and times.
TEST(CuptiRun, ATrainingProgram) {
  const std::string program = HOTPACK_BINARY_DIR "/bin/train_mlp";
  if (!std::filesystem::exists(program)) GTEST_SKIP() << "train_mlp was not built";
  const Result result = Play({program, "--steps", "30"});
  EXPECT_EQ(result.outcome.code, 0) << result.outcome.err;
  ExpectGivenBack(result);
  auto cupti = result.cupti;
  EXPECT_EQ(result.file.notes.launches.size(), static_cast<size_t>(cupti["callbacks"]));
  EXPECT_EQ(result.Timed(), result.file.notes.launches.size());
  std::map<std::string, int> names;
  for (const Launch& launch : result.file.notes.launches) ++names[result.Name(launch)];
  EXPECT_EQ(names.count(""), 0u);
  EXPECT_GT(names.size(), 5u);
}

// The case of the check on a GPU, as it runs there: it is the other tool.
TEST(CuptiRun, TheProbeOfTheCheckOnAGpu) {
  const std::string program = HOTPACK_BINARY_DIR "/bin/gpu_probe";
  if (!std::filesystem::exists(program)) GTEST_SKIP() << "gpu_probe was not built";
  const Result result = Play({program, "--case", "cupti", "--quick"}, {.iterations = "3"});
  EXPECT_EQ(result.outcome.code, 0) << result.outcome.err;
  const auto told = nlohmann::json::parse(result.outcome.out);
  std::map<std::string, std::string> findings;
  for (const auto& finding : told["findings"]) findings[finding["name"]] = finding["result"];
  for (const char* name : {"cupti.taken", "cupti.free", "cupti.enable", "cupti.records"})
    EXPECT_EQ(findings[name], "pass") << name;
  EXPECT_EQ(told["figures"].size(), 2u);
  EXPECT_GT(result.Timed(), 0u);
}

}  // namespace
