// The launch collector: its notes on each piece of work that launch_client submits, on the simulated device.
#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "profiler/trace_file.h"
#include "tests/support/subprocess.h"

namespace {

using hotpack::Launch;
using hotpack::TraceFile;
using hotpack_test::Outcome;
using hotpack_test::RunProgram;
using hotpack_test::TemporaryDirectory;
using testing::ElementsAre;
using testing::HasSubstr;

struct Ran {
  Outcome outcome;
  TraceFile file;
};

Ran Play(const std::vector<std::string>& options, const std::map<std::string, std::string>& more = {}) {
  const TemporaryDirectory directory;
  std::vector<std::string> command = {HOTPACK_COMMAND, "run", "--simulate", "--trace", directory.path() + "/trace"};
  command.insert(command.end(), options.begin(), options.end());
  command.insert(command.end(), {"--", HOTPACK_TEST_DIR "/launch_client"});
  std::map<std::string, std::string> environment = {{"HOTPACK", ""}, {"LD_LIBRARY_PATH", ""}, {"HOTPACK_LAUNCHES", ""}};
  for (const auto& [name, value] : more) environment[name] = value;
  Ran ran{RunProgram(command, environment), {}};
  EXPECT_EQ(ran.outcome.code, 0) << ran.outcome.err;
  absl::StatusOr<TraceFile> file = hotpack::LoadTrace(directory.path() + "/trace");
  EXPECT_TRUE(file.ok()) << file.status();
  if (file.ok()) ran.file = *std::move(file);
  return ran;
}

// "name: ids" in the order of the launches.
std::vector<std::string> Launches(const TraceFile& file) {
  std::vector<std::string> lines;
  for (const Launch& launch : file.notes.launches) {
    std::string line = launch.name == hotpack::kNoName ? "?" : file.notes.names[launch.name];
    line += ":";
    for (uint64_t i = 0; i < launch.blocks; ++i)
      line.append(" ").append(std::to_string(file.notes.launch_blocks[launch.first_block + i]));
    lines.push_back(line);
  }
  return lines;
}

const char* const kExpected[] = {"pointers: 0 1",  "pointers: 2",    "by_value: 1",    "pointers: 2 0",
                                 "nothing:",       "memcpy HtoD: 0", "memcpy DtoH: 1", "memcpy DtoD: 0 2",
                                 "memcpy HtoD: 2", "memset: 1",      "memset: 0",      "memcpy 2D: 0 2",
                                 "graph:",         "nothing:",       "by_value:",      "memset: 3"};

TEST(Launches, EveryKindOfWorkNamesItsBlocks) {
  const Ran ran = Play({"--launches"});
  EXPECT_THAT(Launches(ran.file), testing::ElementsAreArray(kExpected));
  const std::vector<Launch>& launches = ran.file.notes.launches;
  ASSERT_EQ(launches.size(), std::size(kExpected));
  EXPECT_EQ(launches[0].position, 3u);
  EXPECT_EQ(launches[14].position, 4u);
  EXPECT_EQ(launches[15].position, 5u);
  EXPECT_EQ(launches[0].stream, 0u);
  EXPECT_NE(launches[1].stream, 0u);  // the thread's own default stream
  EXPECT_NE(launches[8].stream, 0u);
  EXPECT_NE(launches[8].stream, launches[1].stream);
  EXPECT_EQ(launches[9].stream, launches[8].stream);
  EXPECT_EQ(launches[12].stream, launches[8].stream);
  for (size_t i = 1; i < launches.size(); ++i) EXPECT_GE(launches[i].time_ns, launches[i - 1].time_ns);
}

TEST(Launches, AreTheSameInAPlainArenaAndInDebugMode) {
  EXPECT_THAT(Launches(Play({"--launches", "--arena", "plain"}).file), testing::ElementsAreArray(kExpected));
  // Gaps belong to the block in the recording: an address behind the end names it then.
  const Ran ran = Play({"--launches", "--debug", "guard"}, {{"SIMGPU_CHECK", "0"}});
  std::vector<std::string> expected(std::begin(kExpected), std::end(kExpected));
  expected[1] = "pointers: 2 0";
  EXPECT_EQ(Launches(ran.file), expected);
}

TEST(Launches, AreNotNotedUnlessAskedFor) {
  EXPECT_TRUE(Play({}).file.notes.launches.empty());
  EXPECT_EQ(Play({}, {{"HOTPACK_LAUNCHES", "1"}}).file.notes.launches.size(), std::size(kExpected));
}

TEST(Launches, NeedATrace) {
  const Outcome outcome = RunProgram({HOTPACK_COMMAND, "run", "--simulate", "--launches", "--", "true"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err, "hotpack run: --launches needs --trace FILE or --report FILE: launches are recorded there\n");
}

// What `hotpack show` makes of them.
TEST(Launches, AreShown) {
  const TemporaryDirectory directory;
  const std::string trace = directory.path() + "/trace";
  const std::map<std::string, std::string> environment = {{"HOTPACK", ""}, {"LD_LIBRARY_PATH", ""}};
  ASSERT_EQ(RunProgram({HOTPACK_COMMAND, "run", "--simulate", "--trace", trace, "--launches", "--",
                        HOTPACK_TEST_DIR "/launch_client"},
                       environment)
                .code,
            0);
  EXPECT_THAT(RunProgram({HOTPACK_COMMAND, "show", trace}).out,
              HasSubstr("launches       16 of 9 kernels, copies and memsets; 4 blocks named, 0 never (0 B)\n"));
  const std::string json = RunProgram({HOTPACK_COMMAND, "show", "--json", trace}).out;
  EXPECT_THAT(json, HasSubstr("\"blocks_named\": 4"));
  // A recording with notes passes through import unchanged. As CSV it loses them, and import reports that.
  ASSERT_EQ(RunProgram({HOTPACK_COMMAND, "import", trace, "-o", trace + "2"}).code, 0);
  EXPECT_THAT(RunProgram({HOTPACK_COMMAND, "show", trace + "2"}).out, HasSubstr("launches       16 of 9 kernels"));
  EXPECT_THAT(RunProgram({HOTPACK_COMMAND, "import", trace, "-o", trace + ".csv"}).err,
              HasSubstr("left out: launches, ranges and stacks, which an event CSV cannot hold"));
}

}  // namespace
