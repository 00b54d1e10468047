// Launches and ranges of programs with several contexts, processes and threads (collectors_client), on the simulated
// device.
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "profiler/trace_file.h"
#include "tests/support/subprocess.h"

namespace {

using hotpack::Event;
using hotpack::EventKind;
using hotpack::Launch;
using hotpack::RangeEdge;
using hotpack::RangeKind;
using hotpack::TraceFile;
using hotpack_test::Outcome;
using hotpack_test::RunProgram;
using hotpack_test::TemporaryDirectory;
using testing::ElementsAre;
using testing::HasSubstr;

struct Ran {
  Outcome outcome;
  std::map<std::string, TraceFile> files;  // by the text behind "trace" in their names; a process id is "pid"
};

Ran Play(const std::string& scenario, const std::vector<std::string>& options = {},
         const std::map<std::string, std::string>& more = {}) {
  const TemporaryDirectory directory;
  std::vector<std::string> command = {HOTPACK_COMMAND, "run",     "--simulate",
                                      "--launches",    "--trace", directory.path() + "/trace"};
  command.insert(command.end(), options.begin(), options.end());
  command.insert(command.end(), {"--", HOTPACK_TEST_DIR "/collectors_client", scenario});
  std::map<std::string, std::string> environment = {
      {"HOTPACK", ""}, {"LD_LIBRARY_PATH", ""}, {"NVTX_INJECTION64_PATH", ""}};
  for (const auto& [name, value] : more) environment[name] = value;
  Ran ran{RunProgram(command, environment), {}};
  EXPECT_EQ(ran.outcome.code, 0) << ran.outcome.err;
  for (const auto& entry : std::filesystem::directory_iterator(directory.path())) {
    absl::StatusOr<TraceFile> file = hotpack::LoadTrace(entry.path());
    EXPECT_TRUE(file.ok()) << file.status();
    if (!file.ok()) continue;
    std::string name = entry.path().filename().string().substr(5);
    if (name == "." + std::to_string(file->origin.process)) name = ".pid";
    ran.files[name] = *std::move(file);
  }
  return ran;
}

std::string NameOf(const TraceFile& file, hotpack::NameOrdinal name) {
  return name == hotpack::kNoName ? "?" : file.notes.names[name];
}

// "name: blocks", by the order of their allocations
std::vector<std::string> Launches(const TraceFile& file) {
  std::map<uint64_t, size_t> ordinals;
  for (const Event& event : file.trace.events) {
    if (event.kind == EventKind::kAllocate) ordinals.emplace(event.id, ordinals.size());
  }
  std::vector<std::string> lines;
  for (const Launch& launch : file.notes.launches) {
    std::string line = NameOf(file, launch.name) + ":";
    for (uint64_t i = 0; i < launch.blocks; ++i) {
      line.append(" ").append(std::to_string(ordinals.at(file.notes.launch_blocks[launch.first_block + i])));
    }
    lines.push_back(line);
  }
  return lines;
}

// "+name" push, "-" pop
std::vector<std::string> Edges(const TraceFile& file) {
  std::vector<std::string> edges;
  for (const RangeEdge& edge : file.notes.ranges) {
    edges.push_back(edge.kind == RangeKind::kPush ? "+" : "-");
    if (edge.kind == RangeKind::kPush) edges.back().append(NameOf(file, edge.name));
  }
  return edges;
}

// "a" allocation, "r" release, "m" mark, "i" interrupt, "u" resume.
std::string Events(const TraceFile& file) {
  std::string text;
  for (const Event& event : file.trace.events) text += " armiu"[static_cast<int>(event.kind)];
  return text;
}

TEST(Collectors, EachDeviceHasARecordingOfWhatConcernsIt) {
  Ran ran = Play("devices", {}, {{"SIMGPU_DEVICES", "2"}});
  ASSERT_EQ(ran.files.size(), 2u);
  EXPECT_THAT(Launches(ran.files[""]), ElementsAre("two: 0", "two: 0", "memset: 0"));
  EXPECT_THAT(Launches(ran.files[".2"]), ElementsAre("two: 0", "two: 0", "memset:", "two:"));
  EXPECT_THAT(Edges(ran.files[""]), ElementsAre("+early", "+first", "+second", "-", "-", "-"));
  EXPECT_THAT(Edges(ran.files[".2"]), ElementsAre("+early", "+first", "+second", "-", "-", "-"));
  EXPECT_EQ(ran.files[""].notes.ranges[1].position, 0u);
  EXPECT_EQ(ran.files[""].notes.ranges[2].position, 1u);
  EXPECT_EQ(ran.files[".2"].notes.ranges[2].position, 0u);
}

TEST(Collectors, ContextsThatFollowEachOther) {
  Ran ran = Play("contexts", {"--interrupt-range", "eval", "--iteration-range", "step"});
  ASSERT_EQ(ran.files.size(), 3u);
  for (const char* name : {"", ".2", ".3"}) EXPECT_THAT(Launches(ran.files[name]), ElementsAre("two: 0")) << name;
  EXPECT_THAT(Edges(ran.files[""]), ElementsAre("+eval"));
  EXPECT_THAT(Edges(ran.files[".2"]), ElementsAre("+eval", "-"));
  EXPECT_THAT(Edges(ran.files[".3"]), ElementsAre());
  EXPECT_EQ(Events(ran.files[""]), "iar");
  EXPECT_EQ(Events(ran.files[".2"]), "iaru");
  EXPECT_EQ(Events(ran.files[".3"]), "ar");
  // The process ends without a context.
  EXPECT_THAT(ran.outcome.err,
              HasSubstr("none of the program's ranges and marks matched HOTPACK_ITERATION_RANGE=step"));
}

TEST(Collectors, RangesOfOtherThreadsWhileContextsAreMade) {
  Ran ran = Play("threads", {"--interrupt-range", "eval"});
  EXPECT_EQ(ran.files.size(), 20u);
  for (const auto& [name, file] : ran.files) {
    std::map<uint16_t, int> open;
    int interrupts = 0;
    for (const RangeEdge& edge : file.notes.ranges) {
      int& level = open[edge.thread];
      level += edge.kind == RangeKind::kPush ? 1 : -1;
      ASSERT_TRUE(level == 0 || level == 1) << name;
    }
    for (const Event& event : file.trace.events) {
      interrupts += event.kind == EventKind::kInterrupt ? 1 : event.kind == EventKind::kResume ? -1 : 0;
      ASSERT_TRUE(interrupts >= 0 && interrupts <= 2) << name;
    }
  }
}

TEST(Collectors, OfTooManyEarlyRangesThoseThatAreOpen) {
  EXPECT_THAT(Edges(Play("many").files[""]), ElementsAre("+open", "+inner", "-", "-"));
}

TEST(Collectors, AForkedChildLeavesTheRecordingAlone) {
  Ran ran = Play("fork");
  ASSERT_EQ(ran.files.size(), 1u);
  EXPECT_THAT(Launches(ran.files[""]), ElementsAre("two: 0", "two: 0"));
  EXPECT_THAT(Edges(ran.files[""]), ElementsAre("+parent", "-"));
}

TEST(Collectors, AForkedChildThatUsesTheDeviceHasItsOwn) {
  Ran ran = Play("fork_first");
  ASSERT_EQ(ran.files.size(), 2u);
  for (const auto& [name, file] : ran.files) EXPECT_THAT(Launches(file), ElementsAre("two: 0")) << name;
  EXPECT_THAT(Edges(ran.files[""]), ElementsAre("+child", "-"));
  EXPECT_THAT(Edges(ran.files[".pid"]), ElementsAre("+parent", "-"));
}

TEST(Collectors, ACapturedCallIsNoLaunchWhoseTimesCome) {
  Ran ran = Play("captured");
  const TraceFile& file = ran.files[""];
  ASSERT_THAT(Launches(file), ElementsAre("two: 0", "two: 0"));
  EXPECT_GT(file.notes.launches[0].end_ns, 0u);
  EXPECT_EQ(file.notes.launches[1].end_ns, 0u);
}

TEST(Collectors, BatchesOfCopies) {
  Ran ran = Play("batches");
  if (ran.outcome.out == "none") GTEST_SKIP() << "the headers are older than CUDA 13";
  const TraceFile& file = ran.files[""];
  EXPECT_THAT(Launches(file), ElementsAre("memcpy batch: 0 2 1", "memcpy batch: 1 2 0"));
  for (const Launch& launch : file.notes.launches) EXPECT_NE(launch.stream, 0u);
}

}  // namespace
