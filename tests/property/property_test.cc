// Random programs on the simulated device: as they are (which shows that they are right), and through the hooks. Its
// happens-before checker is the judge. A failure prints the command that repeats it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cinttypes>
#include <cstdlib>
#include <sstream>

#include "tests/support/subprocess.h"

namespace {

using Environment = std::map<std::string, std::string>;

uint64_t Number(const char* name, uint64_t otherwise) {
  const char* text = getenv(name);
  return text != nullptr && *text != '\0' ? strtoull(text, nullptr, 10) : otherwise;
}

std::string PreloadUnderTest() {
  const char* other = getenv("HOTPACK_TEST_PRELOAD");  // a build that was broken on purpose
  return other != nullptr ? other : HOTPACK_PRELOAD;
}

struct Shape {
  const char* name;
  uint64_t seeds;  // added to the first seed: each shape has programs of its own
  int threads;
  int programs;  // one after the other, in one process
  Environment environment;
  bool starves;            // there is too little memory, and the program is to see that
  bool waits_too = false;  // played a second time, waiting for each plan: whether threads meet one else is luck
  bool varied = false;     // no iteration is like another one
};

// The first program of a process begins with one stream and no known contexts. The next one begins with the state that
// it leaves.
std::vector<Shape> Shapes() {
  return {
      {"OneProgram", 000000, 1, 1, {}, false},
      {"SeveralPrograms", 100000, 1, 3, {}, false},
      {"TwoDevices", 200000, 1, 2, {{"SIMGPU_DEVICES", "2"}}, false},
      // No program uses a device's memory on another one: each use is on a stream of the block's context.
      {"TwoDevicesApart", 1000000, 1, 2, {{"SIMGPU_DEVICES", "2"}, {"SIMGPU_PEERS", "0"}}, false},
      {"LittleMemory", 300000, 1, 2, {{"SIMGPU_MEMORY", "16M"}}, true},
      {"FourThreads", 400000, 4, 2, {}, false},
      {"FourThreadsDelayed", 600000, 4, 2, {{"SIMGPU_DELAY", "100"}}, false, true},
      // A query that says "finished" is an order for the checker. Here each says "not yet".
      {"WorkThatGoesOn", 800000, 1, 2, {{"SIMGPU_FAIL", "cuEventQuery:1+=600"}, {"HOTPACK_PAGE_WAIT", "1"}}, false},
      {"LargeHandles", 700000, 2, 2, {{"HOTPACK_HANDLE", "64:2"}}, false},
      {"IterationsDiffer", 900000, 1, 2, {{"HOTPACK_ENVELOPE", "1"}}, false, true, true},
      {"AlwaysWaits", 500000, 1, 2, {{"HOTPACK_FREE_SYNC", "always"}}, false},
  };
}

struct Figures {
  std::map<std::string, uint64_t> sum;
  void Add(const std::string& line) {
    std::istringstream words(line);
    std::string name;
    uint64_t value = 0;
    while (words >> name >> value) sum[name] += value;
  }
};

constexpr uint64_t kInAProcess = 10000;  // operations

// Runs programs of the shape until `operations` were done, or until one fails. `from`: added to the shape's first seed.
void Play(const Shape& shape, bool preload, uint64_t operations, Figures* figures, uint64_t from = 0) {
  const uint64_t first = Number("HOTPACK_TEST_SEED", 1) + shape.seeds + from;
  const std::string simulated = std::string(HOTPACK_BINARY_DIR) + "/lib/simgpu";
  Environment environment = shape.environment;
  environment["LD_LIBRARY_PATH"] = simulated;
  environment["LD_PRELOAD"] = simulated + "/libsimgpu_witness.so";
  if (preload) environment["LD_PRELOAD"].append(" ").append(PreloadUnderTest());
  environment["HOTPACK"] = "";
  // Scripts, unless a shape or the environment asks for envelopes: those serve what the programs are to displace.
  if (getenv("HOTPACK_ENVELOPE") == nullptr) environment.emplace("HOTPACK_ENVELOPE", "0");
  const uint64_t processes = std::max<uint64_t>(1, operations / kInAProcess);
  for (uint64_t seed = first; seed < first + processes; ++seed) {
    const std::vector<std::string> command = {HOTPACK_BINARY_DIR "/tests/random_program",
                                              std::to_string(seed),
                                              std::to_string(kInAProcess),
                                              std::to_string(shape.threads),
                                              std::to_string(shape.programs),
                                              shape.varied ? "varied" : "alike"};
    const hotpack_test::Outcome outcome = hotpack_test::RunProgram(command, environment);
    std::string again;
    for (const auto& [name, value] : environment) again.append(name).append("='").append(value).append("' ");
    for (const std::string& word : command) again.append(word).append(" ");
    ASSERT_EQ(outcome.code, 0) << (outcome.code > 128 ? "it ended by a signal\n" : "") << outcome.err
                               << "\nonce more: " << again;
    figures->Add(outcome.out);
  }
}

class RandomPrograms : public testing::TestWithParam<Shape> {};
INSTANTIATE_TEST_SUITE_P(All, RandomPrograms, testing::ValuesIn(Shapes()),
                         [](const auto& param) { return std::string(param.param.name); });

TEST_P(RandomPrograms, AreRightByThemselves) {
  Figures figures;
  ASSERT_NO_FATAL_FAILURE(Play(GetParam(), false, Number("HOTPACK_TEST_OPERATIONS", 1000000) / 21, &figures));
  EXPECT_GT(figures.sum["operations"], 0u);
  if (!GetParam().starves) {
    EXPECT_EQ(figures.sum["refused"], 0u);
  }
}

TEST_P(RandomPrograms, AreServedRight) {
  Figures figures;
  // Plans for iterations that differ take most of the time of such programs.
  const uint64_t operations = Number("HOTPACK_TEST_OPERATIONS", 1000000) / (GetParam().varied ? 28 : 7);
  ASSERT_NO_FATAL_FAILURE(Play(GetParam(), true, operations, &figures));
  if (GetParam().waits_too) {
    Shape waiting = GetParam();
    waiting.environment["HOTPACK_WAIT_PLAN"] = "1";
    ASSERT_NO_FATAL_FAILURE(Play(waiting, true, operations, &figures));
  }
  // They show something only if plans were made and followed, left and come back to, and all kinds of calls occurred.
  const std::map<std::string, uint64_t>& sum = figures.sum;
  // Few places of an envelope are in use, because it knows what was ever live together.
  const bool envelopes = GetParam().varied || Number("HOTPACK_ENVELOPE", 0) == 1;
  const auto displaces = [&] { return sum.at("displaced") > sum.at("requests") / (envelopes ? 1000 : 100); };
  // The order of threads is the scheduler's, and most of their programs displace none within envelopes: more programs
  // follow, until enough were displaced.
  const uint64_t programs = std::max<uint64_t>(1, operations / kInAProcess);
  for (uint64_t more = 1; envelopes && GetParam().threads > 1 && !displaces() && more <= 4; ++more) {
    ASSERT_NO_FATAL_FAILURE(Play(GetParam(), true, operations, &figures, more * programs));
  }
  EXPECT_GE(sum.at("operations"), operations / 10000 * 10000);
  EXPECT_GT(sum.at("requests"), sum.at("operations") / 8);
  // The order of threads is the scheduler's, and so is how much of it repeats.
  EXPECT_GT(sum.at("planned"), sum.at("requests") / (GetParam().threads > 1 ? 60 : 20));
  EXPECT_TRUE(displaces()) << sum.at("displaced") << " of " << sum.at("requests");
  EXPECT_GT(sum.at("plans"), sum.at("operations") / 20000);
  for (const char* kind : {"releases", "uses", "edges", "streams", "captures", "graph_launches"}) {
    EXPECT_GT(sum.at(kind), 0u) << kind;
  }
  if (GetParam().starves) {
    EXPECT_GT(sum.at("out_of_memory"), 0u);
  } else {
    EXPECT_EQ(sum.at("refused"), 0u) << "the driver alone refuses none of these calls";
  }
  std::ostringstream all;
  for (const auto& [name, value] : sum) all << name << " " << value << "  ";
  printf("seeds from %" PRIu64 " on: %s\n", Number("HOTPACK_TEST_SEED", 1) + GetParam().seeds, all.str().c_str());
}

}  // namespace
