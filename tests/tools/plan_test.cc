// `hotpack plan` and `hotpack plan verify` as a user meets them.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/preload/subprocess.h"
#include "tests/tools/command_folder.h"

namespace {

using hotpack_test::Outcome;
using hotpack_test::ReadFile;
using hotpack_test::RunProgram;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kGraph = HOTPACK_SOURCE_DIR "/tests/data/chain.graph.json";

class PlanCommandTest : public hotpack_test::CommandFolder {
 protected:
  static Outcome Plan(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {HOTPACK_COMMAND, "plan"});
    return RunProgram(arguments, {{"LD_PRELOAD", ""}});
  }
  static nlohmann::json PlanJson(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--json", "--time-limit", "200ms"});
    const Outcome outcome = Plan(arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out, nullptr, /*allow_exceptions=*/false);
  }
  static void ExpectRefused(const std::vector<std::string>& arguments, const std::string& line, int code = 2) {
    const Outcome outcome = Plan(arguments);
    EXPECT_EQ(outcome.code, code) << ::testing::PrintToString(arguments);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err, "hotpack plan: " + line + "\n");
  }
};

TEST_F(PlanCommandTest, EveryPlannerKeepsToTheBudgetAndIsVerified) {
  const nlohmann::json whole = PlanJson({kGraph});
  EXPECT_EQ(whole["time"], whole["baseline_time"]);
  const auto needed = whole["arena"].get<int64_t>();
  for (const std::string algorithm : {"auto", "search", "chen", "dtr"}) {
    const int64_t budget = needed * 2 / 3;
    const std::string file = Path(algorithm + ".json");
    const nlohmann::json plan = PlanJson({kGraph, "--budget", std::to_string(budget), "--algorithm", algorithm, "--out", file});
    EXPECT_LE(plan["arena"], budget) << algorithm;
    EXPECT_GE(plan["arena"], plan["live_peak"]);
    EXPECT_GT(plan["recomputed"], 0);
    EXPECT_GT(plan["time"], plan["baseline_time"]);
    EXPECT_EQ(plan["lower_bound_time"], plan["baseline_time"]);
    const Outcome verified = Plan({"verify", kGraph, file});
    EXPECT_EQ(verified.code, 0) << verified.err;
    EXPECT_THAT(verified.out, StartsWith("valid: " + std::to_string(plan["recomputed"].get<int64_t>()) + " operators again"));
  }
}

TEST_F(PlanCommandTest, TheProgramsOwnPeak) {
  const nlohmann::json chain = PlanJson({kGraph});
  EXPECT_EQ(chain["operators"], 25);
  EXPECT_EQ(chain["program_peak"], chain["live_peak"]);  // nothing is said of when the program lets go of what
  // x is used by the first operator alone, and there until the second has run.
  const std::string log = Write("late.log", R"({"ANNOTATION":"START","INSTRUCTION":"ANNOTATE"}
{"INSTRUCTION":"CONSTANT","NAME":"x"}
{"INSTRUCTION":"MEMORY","MEMORY":"4096","NAME":"x"}
{"ARGS":["x"],"INSTRUCTION":"CALL","NAME":"conv","RESULT":["y"],"TIME":"50"}
{"INSTRUCTION":"MEMORY","MEMORY":"1024","NAME":"y"}
{"ALIAS":"-1","INSTRUCTION":"ALIAS","NAME":"y"}
{"ARGS":["y"],"INSTRUCTION":"CALL","NAME":"conv","RESULT":["z"],"TIME":"50"}
{"INSTRUCTION":"MEMORY","MEMORY":"2048","NAME":"z"}
{"ALIAS":"-1","INSTRUCTION":"ALIAS","NAME":"z"}
{"INSTRUCTION":"RELEASE","NAME":"x"}
{"INSTRUCTION":"RELEASE","NAME":"y"}
)");
  const nlohmann::json late = PlanJson({log});
  EXPECT_EQ(late["operators"], 2);
  EXPECT_EQ(late["live_peak"], 4096 + 1024);
  EXPECT_EQ(late["program_peak"], 4096 + 1024 + 2048);
}

TEST_F(PlanCommandTest, WithLessMemoryItTakesNoLessTime) {
  int64_t before = 0;
  for (const char* budget : {"20M", "17M", "15M", "13M", "11M"}) {
    const auto time = PlanJson({kGraph, "--budget", budget})["time"].get<int64_t>();
    EXPECT_GE(time, before) << budget;
    before = time;
  }
}

TEST_F(PlanCommandTest, CopiesInsteadOfComputing) {
  const nlohmann::json plan = PlanJson({kGraph, "--budget", "15M", "--algorithm", "search", "--swap", "--bandwidth", "100000"});
  EXPECT_GT(plan["swapped"], 0);
  EXPECT_GT(plan["host_peak"], 0);
  EXPECT_LE(plan["time"].get<double>(), plan["baseline_time"].get<double>() * 1.05);
  ExpectRefused({kGraph, "--budget", "15M", "--host-memory", "1", "--algorithm", "chen", "--bandwidth", "0"},
                "--bandwidth: Value 0 not in range 0.001000 to 1000000.000000");
}

TEST_F(PlanCommandTest, BudgetsThatCannotBe) {
  ExpectRefused({kGraph, "--budget", "0"}, "--budget: a budget is at least 1");
  ExpectRefused({kGraph, "--budget", "5M"}, std::string(kGraph) + ": a budget of 5242880 bytes: every plan needs at least 7340032");
  const Outcome outcome = Plan({kGraph, "--budget", "7340032", "--algorithm", "chen"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("no plan found for a budget of 7340032 bytes; the least found needs "));
}

TEST_F(PlanCommandTest, PlansThatAreWrong) {
  const std::string file = Path("plan.json");
  PlanJson({kGraph, "--budget", "15M", "--out", file});
  const std::string text = ReadFile(file);
  // The first run that was to be done again is left out.
  nlohmann::json plan = nlohmann::json::parse(text);
  std::vector<int> runs;
  for (size_t i = 0; i < plan["actions"].size(); ++i) {
    const nlohmann::json& action = plan["actions"][i];
    if (action[0] != "run") continue;
    if (std::find(runs.begin(), runs.end(), action[1].get<int>()) != runs.end()) {
      plan["actions"].erase(i);
      break;
    }
    runs.push_back(action[1]);
  }
  const Outcome wrong = Plan({"verify", kGraph, Write("wrong.json", plan.dump())});
  EXPECT_EQ(wrong.code, 1);
  EXPECT_THAT(wrong.err, StartsWith("hotpack plan: " + Path("wrong.json") + ": not valid: action "));
  const std::string other = Write("other.json", absl::StrReplaceAll(text, {{"\"operators\": 25", "\"operators\": 26"}}));
  ExpectRefused({"verify", kGraph, other}, other + ": a plan of another graph");
  const std::string odd = Write("odd.json", absl::StrReplaceAll(text, {{"[\"run\",0]", "[\"run\",99]"}}));
  ExpectRefused({"verify", kGraph, odd}, odd + ": action 0: there is no operator 99");
}

TEST_F(PlanCommandTest, GraphsThatAreWrong) {
  ExpectRefused({}, "GRAPH is required");
  ExpectRefused({Path("none")}, Path("none") + ": No such file or directory");
  ExpectRefused({Write("empty", "")}, Path("empty") + ": no JSON");
  ExpectRefused({Write("log", "{\"INSTRUCTION\":\"JUMP\"}\n")}, Path("log") + ":1: 'JUMP' is no instruction");
  const std::string cycle = Write("cycle", R"({"format": "hotpack-graph", "version": 1, "storages": [{"name": "a", "bytes": 1}, {"name": "b", "bytes": 1}],
    "operators": [{"name": "f", "cost_ns": 1, "reads": ["a"], "writes": ["b"]}, {"name": "g", "cost_ns": 1, "reads": ["b"], "writes": ["a"]}]})");
  ExpectRefused({cycle}, cycle + ": a cycle: each of these operators needs the next, and the last the first: f, g");
}

}  // namespace
