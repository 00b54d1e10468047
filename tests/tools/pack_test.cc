// `hotpack pack` as scripts use it to decide whether something fits: exit codes, status, seeds and given placements.
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "packer/csv.h"
#include "packer/validator.h"
#include "tests/packer/reference_solver.h"
#include "tests/packer/small_instance.h"
#include "tests/support/subprocess.h"
#include "tests/tools/command_folder.h"
#include "tests/tools/sharded_recording.h"
#include "tools/recording/trace_output.h"

namespace {

using hotpack_test::Outcome;
using hotpack_test::ReadFile;
using hotpack_test::RunProgram;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

class PackCommandTest : public hotpack_test::CommandFolder {
 protected:
  // Load 10, least height 11.
  std::string WriteSmall() const {
    return Write("small.csv", hotpack::FormatCsv(hotpack::testing::AboveItsLoad(), {}, nullptr));
  }
  // Neither its least height nor a proof is found in the time that a test has.
  std::string WriteHard() const {
    return Write("hard.csv", hotpack::FormatCsv(hotpack::testing::HardInstance(400, 1), {}, nullptr));
  }
  static Outcome Pack(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {HOTPACK_COMMAND, "pack"});
    return RunProgram(arguments, {{"LD_PRELOAD", ""}});
  }
  // With --json, and this exit code.
  static nlohmann::json PackJson(int code, std::vector<std::string> arguments) {
    arguments.push_back("--json");
    const Outcome outcome = Pack(arguments);
    EXPECT_EQ(outcome.code, code) << ::testing::PrintToString(arguments) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    return nlohmann::json::parse(outcome.out, nullptr, /*allow_exceptions=*/false);
  }
  static void ExpectRefused(const std::vector<std::string>& arguments, const std::string& line) {
    const Outcome outcome = Pack(arguments);
    EXPECT_EQ(outcome.code, 2) << ::testing::PrintToString(arguments);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err, "hotpack pack: " + line + "\n");
  }
};

TEST_F(PackCommandTest, PacksAndProves) {
  for (const char* algorithm : {"auto", "exact"}) {
    const nlohmann::json object = PackJson(0, {WriteSmall(), "--algorithm", algorithm});
    EXPECT_EQ(object["status"], "packed");
    EXPECT_EQ(object["height"], 11);
    EXPECT_EQ(object["lower_bound"], 11);
    EXPECT_EQ(object["proven_optimal"], true);
  }
  const Outcome text = Pack({WriteSmall()});
  EXPECT_EQ(text.code, 0);
  EXPECT_THAT(text.out, HasSubstr("lower bound  11 (11 B)\nheight       11, 1.00000 times that (optimal)\n"));
}

TEST_F(PackCommandTest, ItFits) {
  for (const char* capacity : {"11", "12", "1K"}) {
    const nlohmann::json object = PackJson(0, {WriteSmall(), "--capacity", capacity});
    EXPECT_EQ(object["status"], "packed");
    EXPECT_TRUE(object["height"].is_number_integer());
  }
  EXPECT_EQ(PackJson(0, {WriteSmall(), "--capacity", "11"})["height"], 11);
}

// 9 is below the load; 10 takes a proof. Nothing is written.
TEST_F(PackCommandTest, ItDoesNotFit) {
  for (const char* capacity : {"9", "10"}) {
    const nlohmann::json object =
        PackJson(3, {WriteSmall(), "--capacity", capacity, "--out", Path("out.csv"), "--time-limit", "60s"});
    EXPECT_EQ(object["status"], "infeasible");
    EXPECT_TRUE(object["height"].is_null());
    EXPECT_TRUE(object["ratio"].is_null());
    EXPECT_GT(object["lower_bound"], std::stoi(capacity));
    EXPECT_EQ(object["proven_optimal"], false);
    EXPECT_FALSE(std::filesystem::exists(Path("out.csv")));
  }
  const Outcome text = Pack({WriteSmall(), "--capacity", "10"});
  EXPECT_EQ(text.code, 3);
  EXPECT_EQ(text.err, "");
  EXPECT_THAT(text.out, HasSubstr("lower bound  11 (11 B)\nheight       none of at most 10: proved\n"));
}

// The result is valid, though too high, and is written.
TEST_F(PackCommandTest, ItIsNotKnown) {
  const std::string load = std::to_string(hotpack::testing::ReferenceLoad(hotpack::testing::HardInstance(400, 1)));
  const nlohmann::json object =
      PackJson(4, {WriteHard(), "--capacity", load, "--time-limit", "20ms", "--out", Path("out.csv")});
  EXPECT_EQ(object["status"], "undecided");
  EXPECT_GT(object["height"], std::stoll(load));
  EXPECT_EQ(object["lower_bound"], std::stoll(load));
  EXPECT_EQ(object["proven_optimal"], false);
  const absl::StatusOr<hotpack::NamedInstance> placed = hotpack::ReadCsvFile(Path("out.csv"));
  ASSERT_TRUE(placed.ok()) << placed.status();
  EXPECT_EQ(hotpack::Validate(placed->instance, {placed->offsets, object["height"]}), "");
  const Outcome text = Pack({WriteHard(), "--capacity", load, "--time-limit", "20ms"});
  EXPECT_EQ(text.code, 4);
  EXPECT_THAT(text.out, HasSubstr("capacity     " + load + ": undecided\n"));
}

TEST_F(PackCommandTest, HeuristicsAloneProveNothing) {
  for (const char* algorithm : {"best-fit", "first-fit"}) {
    const nlohmann::json object = PackJson(4, {WriteSmall(), "--algorithm", algorithm, "--capacity", "10"});
    EXPECT_EQ(object["status"], "undecided");
    EXPECT_EQ(object["lower_bound"], 10);
    EXPECT_EQ(PackJson(3, {WriteSmall(), "--algorithm", algorithm, "--capacity", "9"})["status"], "infeasible");
  }
}

TEST_F(PackCommandTest, WaitsBetweenStreamsAreAvoidedAndCounted) {
  const std::string trace = Path("sharded.trace");
  ASSERT_TRUE(hotpack::WriteRecording(hotpack_test::ShardedSteps(6, 8, hotpack::kEventAsync), {}, 0, trace).ok());
  const nlohmann::json ignoring = PackJson(0, {trace, "--ignore-streams"}), object = PackJson(0, {trace});
  EXPECT_EQ(object["height"], ignoring["height"]);
  EXPECT_EQ(ignoring["stream_edges_avoided"], 0);
  EXPECT_LT(object["stream_edges"], ignoring["stream_edges"]);
  const int64_t avoided = ignoring["stream_edges"].get<int64_t>() - object["stream_edges"].get<int64_t>();
  EXPECT_EQ(object["stream_edges_avoided"], avoided);
  EXPECT_THAT(Pack({trace}).out, HasSubstr("stream edges " + std::to_string(object["stream_edges"].get<int64_t>()) +
                                           " (" + std::to_string(avoided) + " avoided): waits between streams"));
  EXPECT_FALSE(PackJson(0, {WriteSmall()}).contains("stream_edges"));
}

TEST_F(PackCommandTest, CapacitiesThatAreNoneAreRefused) {
  const std::string file = WriteSmall();
  ExpectRefused({file, "--capacity", "0"}, "--capacity: a capacity is at least 1");
  ExpectRefused({file, "--capacity", "0K"}, "--capacity: a capacity is at least 1");
  for (const char* capacity : {"", "-5", "lots", "1.5X", "10 ", "99999999999999G"}) {
    ExpectRefused({file, "--capacity", capacity},
                  "--capacity: '" + std::string(capacity) + "' is no size such as 4096, 512K, 300M or 2G");
  }
}

TEST_F(PackCommandTest, SeedsAndThreadsThatAreNoneAreRefused) {
  const std::string file = WriteSmall();
  ExpectRefused({file, "--seed", "x"}, "--seed: 'x' is no integer below 10^19");
  ExpectRefused({file, "--threads", "0"}, "--threads: Value 0 not in range 1 to 1024");
  ExpectRefused({file, "--threads", "1025"}, "--threads: Value 1025 not in range 1 to 1024");
  EXPECT_EQ(Pack({file, "--seed", "9999999999999999999", "--threads", "4"}).code, 0);
}

// Told a height that takes some search and ends without a time-out, a seed says which placement it is.
TEST_F(PackCommandTest, TheSeedDecides) {
  const std::string file = WriteHard();
  const hotpack::Bytes load = hotpack::testing::ReferenceLoad(hotpack::testing::HardInstance(400, 1));
  const auto placed = [&](const std::string& seed) {
    EXPECT_EQ(PackJson(0, {file, "--capacity", std::to_string(load + load / 52), "--seed", seed, "--time-limit", "60s",
                           "--out", Path("out.csv"), "--force"})["status"],
              "packed");
    return ReadFile(Path("out.csv"));
  };
  std::set<std::string> different;
  for (const char* seed : {"1", "2"}) {
    const std::string first = placed(seed);
    EXPECT_EQ(placed(seed), first) << seed;
    different.insert(first);
  }
  EXPECT_GT(different.size(), 1u);
}

TEST_F(PackCommandTest, BeginsFromThePlacementInTheFile) {
  hotpack::Instance instance = hotpack::testing::HardInstance(400, 1);
  const std::string file = WriteHard();
  const nlohmann::json found = PackJson(0, {file, "--time-limit", "300ms", "--out", Path("placed.csv")});
  // The published best-fit, with which it begins else, is higher.
  const nlohmann::json again = PackJson(0, {Path("placed.csv"), "--start", "--time-limit", "1ms", "--json"});
  EXPECT_LE(again["height"], found["height"]);
  EXPECT_LT(again["height"], PackJson(0, {file, "--algorithm", "best-fit"})["height"]);
  // A start that fits is an answer.
  const std::string capacity = std::to_string(found["height"].get<int64_t>());
  const nlohmann::json fits =
      PackJson(0, {Path("placed.csv"), "--start", "--capacity", capacity, "--out", Path("same.csv")});
  EXPECT_EQ(fits["algorithm"], "start");
  EXPECT_EQ(ReadFile(Path("same.csv")), ReadFile(Path("placed.csv")));
}

TEST_F(PackCommandTest, StartsThatAreNoPlacementAreRefused) {
  ExpectRefused({WriteSmall(), "--start"}, Path("small.csv") + ": --start needs an offset for every block");
  for (const char* missing : {"", "-1"}) {
    const std::string file =
        Write("missing.csv", "id,lower,upper,size,offset\na,0,4,10,0\nb,2,6,20," + std::string(missing) + "\n");
    ExpectRefused({file, "--start"}, file + ": --start needs an offset for every block");
    EXPECT_EQ(Pack({file}).code, 0) << "without --start the offsets do not count";
  }
  const std::string overlap = Write("overlap.csv", "id,lower,upper,size,offset\na,0,4,10,0\nb,2,6,20,9\n");
  ExpectRefused({overlap, "--start", "--out", Path("out.csv")},
                overlap +
                    ": --start: the offsets are no placement: block 0 and block 1 overlap at clock 2: [0, 10) and "
                    "[9, 29)");
  const std::string misaligned =
      Write("misaligned.csv", "id,lower,upper,size,alignment,offset\na,0,4,10,1,0\nb,2,6,20,8,10\n");
  const Outcome outcome = Pack({misaligned, "--start", "--out", Path("out.csv")});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err,
              MatchesRegex("hotpack pack: " + misaligned + ": --start: the offsets are no placement: .*\n"));
  EXPECT_FALSE(std::filesystem::exists(Path("out.csv")));
}

}  // namespace
