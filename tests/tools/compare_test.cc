// `hotpack compare`: its table, its JSON, and wrong use.
#include <algorithm>
#include <atomic>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/subprocess.h"
#include "tests/tools/subcommand.h"

namespace {

using hotpack_test::JsonOf;
using hotpack_test::kCarried;
using hotpack_test::kPerceptron;
using hotpack_test::Outcome;
using hotpack_test::RunProgram;
using hotpack_test::TemporaryDirectory;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::json;

Outcome Compare(std::vector<std::string> arguments) {
  return hotpack_test::RunSubcommand("compare", std::move(arguments));
}

Json CompareJson(std::vector<std::string> arguments) {
  arguments.push_back("--json");
  return JsonOf(Compare(arguments));
}

Json Row(const Json& compared, const std::string& name) {
  for (const Json& row : compared["rows"]) {
    if (row["name"] == name) return row;
  }
  ADD_FAILURE() << "no row " << name;
  return {};
}

std::vector<std::string> Names(const Json& compared) {
  std::vector<std::string> names;
  for (const Json& row : compared["rows"]) names.push_back(row["name"]);
  return names;
}

void ExpectRefused(const std::vector<std::string>& arguments, const std::string& word) {
  const Outcome outcome = Compare(arguments);
  EXPECT_EQ(outcome.code, 2) << ::testing::PrintToString(arguments);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, AllOf(StartsWith("hotpack compare: "), HasSubstr(word)));
  EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << "one line: " << outcome.err;
}

TEST(CompareTest, EveryRowIsThereAndNoneIsBelowWhatIsLive) {
  const Json compared = CompareJson({kCarried});
  EXPECT_THAT(Names(compared), ElementsAre("hotpack", "cudamalloc", "chainer", "pytorch", "pytorch-expandable",
                                           "best-fit", "first-fit", "tflite", "xla"));
  const uint64_t live = compared["live_peak"], steady = compared["live_steady"];
  for (const Json& row : compared["rows"]) {
    SCOPED_TRACE(row.dump());
    EXPECT_FALSE(row["out_of_memory"]);
    EXPECT_GE(row["reserved_peak"], live);
    EXPECT_GE(row["reserved_steady"], steady);
    EXPECT_EQ(row["offline"], row["name"] == "tflite" || row["name"] == "xla");
    EXPECT_DOUBLE_EQ(row["ratio"], row["reserved_peak"].get<double>() / static_cast<double>(live));
    EXPECT_GE(row["device_calls"], 1);
  }
  EXPECT_EQ(Row(compared, "cudamalloc")["reserved_peak"], live);
  EXPECT_EQ(compared["capacity"], nullptr);
}

// 16 KiB of weights in addition to the plan. The figures of the plan are those of `hotpack pack`.
TEST(CompareTest, ThePlanIsWhatIsPacked) {
  const Json compared = CompareJson({kCarried, "--peers", "xla"});
  const Outcome packed = RunProgram({HOTPACK_COMMAND, "pack", kCarried, "--json"}, {{"LD_PRELOAD", ""}});
  const Json figures = Json::parse(packed.out);
  EXPECT_EQ(compared["iteration"]["plan_height"], figures["height"]);
  EXPECT_EQ(compared["iteration"]["plan_lower_bound"], figures["lower_bound"]);
  EXPECT_EQ(compared["iteration"]["requests"], 54);
  EXPECT_TRUE(compared["iteration"]["marked"]);
  // The arena's memory in that iteration: the plan and the blocks outside it, each rounded up to chunks.
  const uint64_t needed =
      compared["iteration"]["plan_height"].get<uint64_t>() + compared["iteration"]["not_planned"].get<uint64_t>();
  EXPECT_GE(Row(compared, "hotpack")["reserved_steady"], compared["live_steady"]);
  EXPECT_LE(Row(compared, "hotpack")["reserved_steady"], needed + 2 * (2 << 20));
  EXPECT_EQ(Row(compared, "xla")["reserved_steady"], needed) << "it is as good as the bound here";
}

// 40 MiB while the job begins, then steps of 14 MiB in addition to 2 MiB that stay. The engine frees the memory that
// the steps do not need.
TEST(CompareTest, TheEngineIsTheOneThatServes) {
  TemporaryDirectory folder;
  const std::string path = folder.path() + "/job.csv";
  std::ofstream file(path);
  file << "event,id,bytes\nalloc,9,2097152\nalloc,8,41943040\nfree,8,\n";
  for (int step = 1; step < 4; ++step) {
    file << "mark," << step << ",\nalloc,1,10485760\nalloc,2,4194304\nfree,1,\nfree,2,\n";
  }
  file << "mark,4,\n";
  file.close();
  const Json compared = CompareJson({path, "--peers", "cudamalloc"});
  EXPECT_EQ(compared["iteration"]["plan_height"], 14 << 20);
  EXPECT_EQ(compared["iteration"]["not_planned"], 2 << 20);
  const Json hotpack = Row(compared, "hotpack");
  EXPECT_EQ(hotpack["reserved_peak"], 42 << 20);
  EXPECT_EQ(hotpack["reserved_steady"], 16 << 20);
  EXPECT_FALSE(Row(CompareJson({path, "--capacity", "42M"}), "hotpack")["out_of_memory"]);
  const Json small = Row(CompareJson({path, "--capacity", "40M"}), "hotpack");
  EXPECT_TRUE(small["out_of_memory"]);
  EXPECT_EQ(small["failed_request"], 1);
  EXPECT_EQ(small["failed_bytes"], 40 << 20);
}

TEST(CompareTest, TheSmallestDevice) {
  const Json compared = CompareJson({kCarried});
  for (const Json& row : compared["rows"]) {
    SCOPED_TRACE(row.dump());
    const uint64_t smallest = row["smallest_device"];
    EXPECT_EQ(smallest % (2 << 20), 0u);
    EXPECT_GE(smallest, compared["live_peak"]);
    EXPECT_GE(row["smallest_driver_calls"], 1);
    EXPECT_GE(row["smallest_synchronizations"], 0);
    const auto on = [&](uint64_t bytes) {
      return Row(CompareJson({kCarried, "--capacity", std::to_string(bytes), "--no-smallest"}), row["name"]);
    };
    EXPECT_FALSE(on(smallest)["out_of_memory"]);
    EXPECT_TRUE(on(smallest - (2 << 20))["out_of_memory"]);
  }
  EXPECT_THAT(Compare({kCarried}).out, HasSubstr("smallest device  calls  waits\n"));
  const Outcome without = Compare({kCarried, "--no-smallest"});
  EXPECT_THAT(without.out, Not(HasSubstr("smallest device")));
  EXPECT_EQ(Row(CompareJson({kCarried, "--no-smallest"}), "hotpack").count("smallest_device"), 0u);
  EXPECT_THAT(Compare({kCarried, "--capacity", "2M"}).out, HasSubstr("; the smallest device is "));
}

TEST(CompareTest, WhatFits) {
  const Outcome yes = Compare({kPerceptron, "--fits", "24GB"});
  EXPECT_EQ(yes.code, 0);
  EXPECT_THAT(yes.out, HasSubstr("a device of 24GB fits:         hotpack, cudamalloc, "));
  const Outcome no = Compare({kPerceptron, "--fits", "2M"});
  EXPECT_EQ(no.code, 1);
  EXPECT_THAT(no.out, HasSubstr("a device of 2M fits:         none\n"));
  const Outcome json = Compare({kPerceptron, "--fits", "2M", "--json"});
  EXPECT_EQ(json.code, 1);
  const Json compared = Json::parse(json.out, nullptr, false);
  EXPECT_EQ(compared["fits"]["hotpack"], false);
  EXPECT_EQ(Row(compared, "pytorch")["fits"], false);
  EXPECT_FALSE(Row(compared, "pytorch")["out_of_memory"]) << "the table itself has no limit";
  ExpectRefused({kPerceptron, "--fits", "0"}, "at least 1");
}

TEST(CompareTest, RepetitionsAreMoreRequests) {
  const uint64_t once = CompareJson({kCarried, "--repeat", "0"})["requests"];
  EXPECT_EQ(CompareJson({kCarried, "--repeat", "3"})["requests"], once + 3 * 54);
}

TEST(CompareTest, TheTableIsForPeople) {
  const Outcome outcome = Compare({kPerceptron, "--peers", "pytorch,best-fit"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.out,
              AllOf(HasSubstr("iteration with the highest live load: 41 requests, as marked\n"),
                    HasSubstr("\nhotpack's engine "), HasSubstr("\nPyTorch's caching allocator "),
                    HasSubstr("\none arena, best fit "), HasSubstr("driver calls"), Not(HasSubstr("expandable"))));
  // One measure for all rows. The memory held while served is listed separately, below them.
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("\nheld at most in the whole run "), Not(HasSubstr("last iteration")),
                                 HasSubstr("\n\nhotpack's engine, held while served by the plan: ")));
}

TEST(CompareTest, WhatDoesNotFitIsSaid) {
  const Json compared = CompareJson({kPerceptron, "--capacity", "2M"});
  const Json pytorch = Row(compared, "pytorch");
  EXPECT_EQ(compared["capacity"], 2 << 20);
  EXPECT_TRUE(pytorch["out_of_memory"]);
  EXPECT_GT(pytorch["failed_bytes"], 1 << 20);
  EXPECT_EQ(pytorch.count("reserved_peak"), 0u);
  EXPECT_TRUE(Row(compared, "hotpack")["out_of_memory"]);
  EXPECT_TRUE(Row(compared, "xla")["out_of_memory"]);
  EXPECT_THAT(Compare({kPerceptron, "--capacity", "2M"}).out, HasSubstr("does not fit: request "));
  const Json roomy = CompareJson({kPerceptron, "--capacity", "1G"});
  for (const Json& row : roomy["rows"]) EXPECT_FALSE(row["out_of_memory"]) << row;
}

TEST(CompareTest, WithoutAnIteration) {
  TemporaryDirectory folder;
  const std::string path = folder.path() + "/once.csv";
  std::ofstream(path) << "event,id,bytes\nalloc,1,1000\nalloc,2,5000\nfree,1,\n";
  const Json compared = CompareJson({path});
  EXPECT_EQ(compared["iteration"], nullptr);
  EXPECT_EQ(compared["live_steady"], compared["live_peak"]);
  EXPECT_EQ(Row(compared, "tflite")["reserved_steady"], 1024 + 5120);
  EXPECT_THAT(Compare({path}).out, HasSubstr("no iteration is marked and none repeats"));
  EXPECT_THAT(Compare({path}).out, Not(HasSubstr("held while served")));
  EXPECT_EQ(Row(compared, "hotpack")["held_while_served"], nullptr);
}

// Marked steps with blocks of drawn sizes and lives, whose packing no lower bound ends: each search for a plan lasts as
// long as it may.
std::string HardJob(const std::string& path) {
  std::ofstream file(path);
  file << "event,id,bytes\n";
  uint64_t id = 0;
  for (int step = 0; step < 8; ++step) {
    uint64_t random = 12345;
    const auto next = [&random](uint64_t below) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      return (random >> 33) % below;
    };
    file << "mark," << step << ",\n";
    std::vector<uint64_t> live;
    for (int i = 0; i < 700; ++i) {
      file << "alloc," << id << "," << 512 * (1000 + next(40'000)) << "\n";
      live.push_back(id++);
      while (live.size() > 4 + next(50)) {
        const size_t k = next(live.size());
        file << "free," << live[k] << ",\n";
        live.erase(live.begin() + static_cast<ptrdiff_t>(k));
      }
    }
    for (const uint64_t block : live) file << "free," << block << ",\n";
  }
  file << "mark,8,\n";
  return path;
}

// Plans come in logical time, so a machine that is busy with something else prints the same bytes.
TEST(CompareTest, ALoadedMachineChangesNothing) {
  TemporaryDirectory folder;
  const std::string path = HardJob(folder.path() + "/hard.csv");
  const std::vector<std::string> arguments = {path, "--peers", "pytorch", "--json"};
  const Outcome quiet = Compare(arguments);
  ASSERT_EQ(quiet.code, 0) << quiet.err;
  EXPECT_GT(Row(Json::parse(quiet.out), "hotpack")["held_while_served"], 0);
  std::atomic<bool> stop{false};
  std::vector<std::thread> busy;
  for (unsigned i = 0; i < 6 * std::max(1u, std::thread::hardware_concurrency()); ++i) {
    busy.emplace_back([&stop] {
      for (volatile uint64_t spin = 0; !stop.load(std::memory_order_relaxed);) spin = spin + 1;
    });
  }
  for (int run = 0; run < 3; ++run) EXPECT_EQ(Compare(arguments).out, quiet.out) << "run " << run;
  stop = true;
  for (std::thread& thread : busy) thread.join();
}

TEST(CompareTest, WrongUseIsOneLine) {
  TemporaryDirectory folder;
  const std::string empty = folder.path() + "/empty.csv", other = folder.path() + "/other.csv";
  std::ofstream(empty) << "event,id,bytes\nmark,1,\n";
  std::ofstream(other) << "id,lower,upper,size\n0,0,1,1\n";
  ExpectRefused({}, "TRACE");
  ExpectRefused({folder.path() + "/none.csv"}, "none.csv: ");
  ExpectRefused({empty}, "no requests to compare");
  ExpectRefused({other}, "other.csv");
  ExpectRefused({kPerceptron, "--peers", "pytorch,nobody"}, "'nobody' is none of cudamalloc, ");
  ExpectRefused({kPerceptron, "--peers", ""}, "--peers");
  ExpectRefused({kPerceptron, "--capacity", "0"}, "at least 1");
  ExpectRefused({kPerceptron, "--capacity", "much"}, "much");
  ExpectRefused({kPerceptron, "--repeat", "-1"}, "--repeat");
  ExpectRefused({kPerceptron, "--unknown"}, "--unknown");
}

}  // namespace
