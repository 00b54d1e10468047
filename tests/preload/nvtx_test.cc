// The NVTX collector: ranges and marks in a recording, as iterations and as interruptions, and an injection library
// that was present before. Programs on the simulated device.
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
using hotpack::RangeEdge;
using hotpack::RangeKind;
using hotpack::TraceFile;
using hotpack_test::Outcome;
using hotpack_test::ReadFile;
using hotpack_test::RunProgram;
using hotpack_test::TemporaryDirectory;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

struct Ran {
  Outcome outcome;
  TraceFile file;
};

// Under `hotpack run --simulate --trace` with more options.
Ran Play(const std::string& scenario, const std::vector<std::string>& options = {},
         const std::map<std::string, std::string>& more = {}) {
  const TemporaryDirectory directory;
  const std::string trace = directory.path() + "/trace";
  std::vector<std::string> command = {HOTPACK_COMMAND, "run", "--simulate", "--trace", trace};
  command.insert(command.end(), options.begin(), options.end());
  command.insert(command.end(), {"--", HOTPACK_TEST_DIR "/nvtx_client", scenario});
  std::map<std::string, std::string> environment = {
      {"HOTPACK", ""}, {"LD_LIBRARY_PATH", ""}, {"NVTX_INJECTION64_PATH", ""}, {"HOTPACK_NVTX_NEXT", ""}};
  for (const auto& [name, value] : more) environment[name] = value;
  Ran ran{RunProgram(command, environment), {}};
  EXPECT_EQ(ran.outcome.code, 0) << ran.outcome.err;
  absl::StatusOr<TraceFile> file = hotpack::LoadTrace(trace);
  EXPECT_TRUE(file.ok()) << file.status();
  if (file.ok()) ran.file = *std::move(file);
  return ran;
}

// "+name" push, "-" pop, "(name" start, ")" end, with the ordinal of the start; "!name" mark.
std::vector<std::string> Edges(const TraceFile& file) {
  std::vector<std::string> edges;
  std::map<uint64_t, size_t> starts;
  for (const RangeEdge& edge : file.notes.ranges) {
    const std::string name = edge.name == hotpack::kNoName ? "" : file.notes.names[edge.name];
    std::string text;
    switch (edge.kind) {
      case RangeKind::kPush:
        text.append("+").append(name);
        break;
      case RangeKind::kPop:
        text = "-";
        break;
      case RangeKind::kStart:
        text.append("(").append(std::to_string(starts.emplace(edge.id, starts.size()).first->second)).append(name);
        break;
      case RangeKind::kEnd:
        text.append(")").append(starts.contains(edge.id) ? std::to_string(starts[edge.id]) : "?");
        break;
      case RangeKind::kMark:
        text.append("!").append(name);
        break;
    }
    edges.push_back(text);
  }
  return edges;
}

// "a" allocation, "r" release, "m" mark, "i" interrupt, "u" resume.
std::string Events(const TraceFile& file) {
  std::string text;
  for (const Event& event : file.trace.events) text += " armiu"[static_cast<int>(event.kind)];
  return text;
}

TEST(Nvtx, EveryKindOfRangeAndMark) {
  const Ran ran = Play("kinds");
  EXPECT_THAT(Edges(ran.file),
              ElementsAre("+ascii", "+wide \xE2\x82\xAC\xF0\x9F\x98\x80", "+attributes", "-", "-", "-", "(0start a",
                          "(1start b", ")0", ")1", "!mark a", "!mark b", "!attributes", "+", "+", "+", "-", "-", "-"));
  for (const RangeEdge& edge : ran.file.notes.ranges) {
    EXPECT_EQ(edge.position, 2u);
    EXPECT_EQ(edge.thread, 0);
    EXPECT_GT(edge.time_ns, 0u);
  }
}

TEST(Nvtx, DomainsHaveStacksOfTheirOwn) {
  EXPECT_THAT(Edges(Play("domains").file), ElementsAre("+plain", "(0lib:registered", "-", "(1wide:too", ")0", ")1",
                                                       "(2lib:registered", ")2", "!lib:mark", "+mark", "-"));
}

TEST(Nvtx, APopWithoutAPushDoesNothing) {
  const Ran ran = Play("unmatched");
  EXPECT_EQ(ran.outcome.out, "-1 0 1 1 0 -1\n");
  EXPECT_THAT(Edges(ran.file), ElementsAre("+one", "+two", "-", "-", ")?", "+left open"));
}

TEST(Nvtx, RangesFromBeforeTheRecordingBeginIt) {
  const Ran ran = Play("early", {"--interrupt-range", "eval*"});
  EXPECT_THAT(Edges(ran.file), ElementsAre("+early", "+eval early", "-", "-"));
  EXPECT_EQ(ran.file.notes.ranges[0].position, 0u);
  EXPECT_EQ(ran.file.notes.ranges[0].time_ns, 0u);
  EXPECT_EQ(Events(ran.file), "iaruar");
}

TEST(Nvtx, MatchingRangesAreIterations) {
  const Ran ran = Play("iterations", {"--iteration-range", "none*,step*"});
  EXPECT_EQ(Events(ran.file), "armarmarmarmmm");
  EXPECT_THAT(ran.outcome.err, Not(HasSubstr("matched")));
  EXPECT_EQ(Events(Play("iterations", {"--iteration-range", "step inner"}).file), "ararmarmarm");
  EXPECT_EQ(Events(Play("iterations", {"--iteration-range", "step ?"}).file),
            "arararar"
            "mm");
}

TEST(Nvtx, MatchingRangesInterrupt) {
  EXPECT_EQ(Events(Play("interrupts", {"--interrupt-range", "eval*"}).file), "ariiuaruiiuuiuar");
  EXPECT_EQ(Events(Play("interrupts").file), "ararar");
}

TEST(Nvtx, TheCCallsAreTheSame) {
  const Ran ran = Play("c_calls", {"--iteration-range", "step c"});
  EXPECT_EQ(ran.outcome.out, "-1 0 1 1 0\n");
  EXPECT_THAT(Edges(ran.file), ElementsAre("+step c", "+", "-", "-"));
  EXPECT_EQ(Events(ran.file), "arm");
}

TEST(Nvtx, APatternThatMatchesNothingIsSaid) {
  const Ran ran = Play("iterations", {"--iteration-range", "stop*", "--interrupt-range", "eval"});
  EXPECT_THAT(ran.outcome.err,
              HasSubstr("hotpack: none of the program's ranges and marks matched HOTPACK_ITERATION_RANGE=stop*"));
  EXPECT_THAT(ran.outcome.err, HasSubstr("hotpack: none of the program's ranges matched HOTPACK_INTERRUPT_RANGE=eval"));
}

TEST(Nvtx, NoPatternIsAnError) {
  for (const char* option : {"--iteration-range", "--interrupt-range"}) {
    for (const char* bad : {"", ",", ",,"}) {
      const Outcome outcome = RunProgram({HOTPACK_COMMAND, "run", "--simulate", option, bad, "--", "true"});
      EXPECT_EQ(outcome.code, 2) << option << " '" << bad << "'";
      EXPECT_THAT(outcome.err,
                  HasSubstr(std::string("hotpack run: ") + option + " " + bad + ": not a list of patterns"));
    }
  }
}

// Then handles and levels belong to the other library, which receives every call.
TEST(Nvtx, HandsOnToTheInjectionThatWasThere) {
  const TemporaryDirectory directory;
  const std::string log = directory.path() + "/log";
  const std::map<std::string, std::string> next = {{"NVTX_INJECTION64_PATH", HOTPACK_NVTX_OTHER},
                                                   {"HOTPACK_TEST_NVTX_LOG", log}};
  Ran ran = Play("unmatched", {}, next);
  EXPECT_EQ(ran.outcome.out, "41 40 40 41 41 41\n");
  EXPECT_THAT(Edges(ran.file), ElementsAre("+one", "+two", "-", "-", ")?", "+left open"));
  EXPECT_EQ(ReadFile(log), "initialized \npop \npush one\npush two\npop \npop \npop \nend another\npush left open\n");
  ran = Play("kinds", {}, next);
  EXPECT_THAT(ReadFile(log), HasSubstr("start start a\nend 77\n"));
  EXPECT_THAT(Edges(ran.file), testing::Contains("(0start a"));
  ran = Play("domains", {}, next);
  EXPECT_THAT(ReadFile(log), HasSubstr("domain lib\n"));
  EXPECT_THAT(ReadFile(log), HasSubstr("domain push ours\n"));
  EXPECT_THAT(Edges(ran.file), testing::Contains("(0lib:registered"));
}

TEST(Nvtx, AnInjectionThatIsNoneIsSaid) {
  const Ran ran = Play("unmatched", {}, {{"NVTX_INJECTION64_PATH", "/nonexistent/injection.so"}});
  EXPECT_THAT(ran.outcome.err,
              HasSubstr("hotpack: HOTPACK_NVTX_NEXT: /nonexistent/injection.so is no NVTX injection library"));
  EXPECT_EQ(ran.outcome.out, "-1 0 1 1 0 -1\n");
}

TEST(Nvtx, AForkWhileAnotherThreadNamesRanges) {
  const Outcome outcome =
      RunProgram({HOTPACK_COMMAND, "run", "--simulate", "--interrupt-range", "none", "--",
                  HOTPACK_TEST_DIR "/nvtx_client", "fork"},
                 {{"HOTPACK", ""}, {"LD_LIBRARY_PATH", ""}, {"NVTX_INJECTION64_PATH", ""}, {"HOTPACK_NVTX_NEXT", ""}});
  EXPECT_EQ(outcome.out, "100\n") << outcome.err;
}

// Without hotpack in the process, the injection is none.
TEST(Nvtx, WithoutHotpackRangesAreEmpty) {
  const Outcome outcome = RunProgram(
      {HOTPACK_TEST_DIR "/nvtx_client", "unmatched"},
      {{"NVTX_INJECTION64_PATH", HOTPACK_NVTX}, {"LD_LIBRARY_PATH", HOTPACK_SIMGPU_LIBRARIES}, {"LD_PRELOAD", ""}});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "-2 -2 -2 -2 -2 -2\n");  // NVTX_NO_PUSH_POP_TRACKING
}

}  // namespace
