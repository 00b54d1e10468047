// `hotpack plan` and `hotpack plan verify` as a user meets them.
#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/subprocess.h"
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
  for (const std::string algorithm : {"auto", "search", "chen", "dtr", "memonger", "knapsack"}) {
    const int64_t budget = needed * 2 / 3;
    const std::string file = Path(algorithm + ".json");
    const nlohmann::json plan =
        PlanJson({kGraph, "--budget", std::to_string(budget), "--algorithm", algorithm, "--out", file});
    EXPECT_LE(plan["arena"], budget) << algorithm;
    EXPECT_GE(plan["arena"], plan["live_peak"]);
    EXPECT_GT(plan["recomputed"], 0);
    EXPECT_GT(plan["time"], plan["baseline_time"]);
    EXPECT_GE(plan["lower_bound_time"], plan["baseline_time"]);
    EXPECT_LE(plan["lower_bound_time"], plan["time"]);
    const Outcome verified = Plan({"verify", kGraph, file});
    EXPECT_EQ(verified.code, 0) << verified.err;
    EXPECT_THAT(verified.out,
                StartsWith("valid: " + std::to_string(plan["recomputed"].get<int64_t>()) + " operators again"));
  }
}

TEST_F(PlanCommandTest, TheProgramsOwnPeak) {
  const nlohmann::json chain = PlanJson({kGraph});
  EXPECT_EQ(chain["operators"], 25);
  EXPECT_EQ(chain["program_peak"], chain["live_peak"]);  // no release times are given
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
  const nlohmann::json plan =
      PlanJson({kGraph, "--budget", "15M", "--algorithm", "search", "--swap", "--bandwidth", "100000"});
  EXPECT_GT(plan["swapped"], 0);
  EXPECT_GT(plan["host_peak"], 0);
  EXPECT_LE(plan["time"].get<double>(), plan["baseline_time"].get<double>() * 1.05);
  ExpectRefused({kGraph, "--budget", "15M", "--host-memory", "1", "--algorithm", "chen", "--bandwidth", "0"},
                "--bandwidth: Value 0 not in range 0.001000 to 1000000.000000");
}

TEST_F(PlanCommandTest, LinksByName) {
  const nlohmann::json slow = PlanJson({kGraph, "--budget", "15M", "--algorithm", "tflms", "--link", "pcie4"}),
                       same = PlanJson({kGraph, "--budget", "15M", "--algorithm", "tflms", "--bandwidth", "25"});
  EXPECT_EQ(slow["time"], same["time"]);
  ExpectRefused({kGraph, "--link", "pcie9"}, "--link: pcie9 not in {pcie4,pcie5,nvlink-c2c}");
  ExpectRefused({kGraph, "--link", "pcie4", "--bandwidth", "3"}, "--link excludes --bandwidth");
}

// Two parameters of 1 MiB with their gradients and states. The update makes a temporary of each.
constexpr const char* kUpdate = R"({"format": "hotpack-step", "version": 1,
  "storages": [
    {"name": "a", "bytes": 1048576, "kind": "parameter", "given": true, "kept": true, "held": true},
    {"name": "b", "bytes": 1048576, "kind": "parameter", "given": true, "kept": true, "held": true},
    {"name": "a.grad", "bytes": 1048576, "kind": "gradient", "kept": true, "held": true},
    {"name": "b.grad", "bytes": 1048576, "kind": "gradient", "kept": true, "held": true},
    {"name": "a.m", "bytes": 1048576, "kind": "optimizer_state", "given": true, "kept": true},
    {"name": "b.m", "bytes": 1048576, "kind": "optimizer_state", "given": true, "kept": true},
    {"name": "t", "bytes": 1048576, "kind": "temporary"},
    {"name": "u", "bytes": 1048576, "kind": "temporary"}],
  "operators": [
    {"name": "mm", "cost_ns": 1000000, "reads": ["a"], "writes": ["a.grad"], "phase": "backward"},
    {"name": "mm", "cost_ns": 1000000, "reads": ["b"], "writes": ["b.grad"], "phase": "backward"},
    {"name": "mul", "cost_ns": 1000, "reads": ["a.grad", "b.grad"], "writes": ["t", "u"], "phase": "update",
     "call": {"args": [[{"t": 2}, {"t": 3}]], "results": [[{"t": 6}, {"t": 7}]]}},
    {"name": "add_", "cost_ns": 1000, "reads": ["t", "u"], "updates": ["a.m", "b.m"], "phase": "update",
     "call": {"args": [[{"t": 4}, {"t": 5}], [{"t": 6}, {"t": 7}]], "results": [null]}}],
  "tensors": [["a"], ["b"], ["a.grad"], ["b.grad"], ["a.m"], ["b.m"], ["t"], ["u"]],
  "optimizers": [{"class": "SGD", "operators": [2, 4], "whole": null, "slices": [
    {"parameter": "a", "gradient": "a.grad", "state": ["a.m"]},
    {"parameter": "b", "gradient": "b.grad", "state": ["b.m"]}]}]})";

TEST_F(PlanCommandTest, AnUpdateInSlices) {
  const std::string graph = Path("step.json"), file = Path("plan.json");
  std::ofstream(graph) << kUpdate;
  // Parameters, gradients and states are 6 MiB, and one temporary at a time is 1.
  const nlohmann::json plan = PlanJson({graph, "--budget", "7M", "--out", file});
  EXPECT_EQ(plan["slices"], 2);
  EXPECT_EQ(plan["live_peak"], 7 << 20);
  EXPECT_EQ(plan["program_peak"], 8 << 20);
  EXPECT_EQ(plan["time"], plan["baseline_time"]);
  const nlohmann::json written = nlohmann::json::parse(ReadFile(file));
  EXPECT_EQ(written["slices"], nlohmann::json::parse(R"([["a"], ["b"]])"));
  const Outcome verified = Plan({"verify", graph, file});
  EXPECT_EQ(verified.code, 0) << verified.err;
  const Outcome whole = Plan({graph, "--budget", "7M", "--slices", "0"});
  EXPECT_EQ(whole.code, 2);
  EXPECT_THAT(whole.err, HasSubstr("every plan needs at least 8388608 (mul: 4194304 of its own, weights and state "
                                   "4194304)"));
  // Between steps the state is on the device if it fits.
  EXPECT_EQ(PlanJson({graph, "--budget", "7M", "--swap", "--link", "pcie5"})["state_on_host"], false);
  const nlohmann::json away =
      PlanJson({graph, "--budget", "5M", "--swap", "--link", "pcie5", "--out", file, "--force"});
  EXPECT_EQ(away["state_on_host"], true);
  EXPECT_EQ(away["host_slices"], 2);
  EXPECT_LE(away["arena"], 5 << 20);
  EXPECT_GE(away["host_peak"], 2 << 20);
  EXPECT_EQ(Plan({"verify", graph, file}).code, 0);
  EXPECT_EQ(Plan({graph, "--budget", "5M", "--swap", "--state", "device"}).code, 2);
  ExpectRefused({graph, "--budget", "5M", "--swap", "--host-memory", "1M", "--time-limit", "100ms"},
                graph + ": no plan found for a budget of 5242880 bytes");
}

// kUpdate with so many parameters.
std::string UpdateOf(int parameters) {
  using Json = nlohmann::json;
  Json graph = Json::parse(kUpdate), names[4], numbers[4];  // of parameters, gradients, states and temporaries
  const Json storages = graph["storages"];
  for (const char* key : {"storages", "operators", "tensors"}) graph[key] = Json::array();
  Json& slices = graph["optimizers"][0]["slices"] = Json::array();
  for (int kind = 0; kind < 4; ++kind) {
    for (int i = 0; i < parameters; ++i) {
      Json storage = storages[static_cast<size_t>(2 * kind)];
      storage["name"] = std::string(1, "pgmt"[kind]) + std::to_string(i);
      names[kind].push_back(storage["name"]);
      numbers[kind].push_back({{"t", parameters * kind + i}});
      graph["tensors"].push_back(Json::array({storage["name"]}));
      graph["storages"].push_back(std::move(storage));
    }
  }
  const auto add = [&](const char* name, int64_t cost, const char* phase) -> Json& {
    return graph["operators"].emplace_back(Json({{"name", name}, {"cost_ns", cost}, {"phase", phase}}));
  };
  for (size_t i = 0; i < static_cast<size_t>(parameters); ++i) {
    Json& backward = add("mm", 1000000, "backward");
    backward["reads"] = Json::array({names[0][i]});
    backward["writes"] = Json::array({names[1][i]});
    slices.push_back({{"parameter", names[0][i]}, {"gradient", names[1][i]}, {"state", Json::array({names[2][i]})}});
  }
  Json& mul = add("mul", 1000, "update");
  mul["reads"] = names[1];
  mul["writes"] = names[3];
  mul["call"] = {{"args", Json::array({numbers[1]})}, {"results", Json::array({numbers[3]})}};
  Json& change = add("add_", 1000, "update");
  change["reads"] = names[3];
  change["updates"] = names[2];
  change["call"] = {{"args", Json::array({numbers[2], numbers[3]})}, {"results", Json::array({nullptr})}};
  graph["optimizers"][0]["operators"] = {parameters, parameters + 2};
  return graph.dump();
}

// Which slices have their state there is MakePlanWithState()'s matter (remat_state_places_test).
TEST_F(PlanCommandTest, TheStateOfSlicesOnTheHost) {
  const std::string graph = Write("step.json", UpdateOf(8)), file = Path("plan.json");
  std::vector<std::string> command = {graph, "--budget", "40M", "--swap", "--state", "host", "--out", file, "--force"};
  EXPECT_EQ(PlanJson(command)["host_slices"], 8);
  EXPECT_EQ(Plan({"verify", graph, file}).code, 0);
  nlohmann::json other = nlohmann::json::parse(ReadFile(file));
  EXPECT_EQ(other["host_slices"], 8);
  for (const int count : {0, 5}) {
    other["host_slices"] = count;
    EXPECT_EQ(Plan({"verify", graph, Write("other.json", other.dump())}).code, 1) << count;
  }
  other["host_slices"] = "all";
  EXPECT_THAT(Plan({"verify", graph, Write("other.json", other.dump())}).err, HasSubstr("host_slices is no count"));
  other.erase("host_slices");  // a plan of before says only that there is some
  EXPECT_EQ(Plan({"verify", graph, Write("other.json", other.dump())}).code, 0);
  const std::string printed =
      Plan({graph, "--budget", "40M", "--swap", "--state", "host", "--time-limit", "300ms"}).out;
  EXPECT_THAT(printed, HasSubstr("8 slices, the state on the host between steps\n"));
  EXPECT_THAT(printed, HasSubstr("no plan in its order with this state on the host takes less\n"));
  // An update that stays whole has its state there as a whole.
  command.insert(command.end(), {"--slices", "0"});
  EXPECT_EQ(PlanJson(command)["host_slices"], 1);
  EXPECT_EQ(Plan({"verify", graph, file}).code, 0);
}

TEST_F(PlanCommandTest, MoreMemoryIsNoReasonForALargerArena) {
  const int64_t without = PlanJson({kGraph})["arena"], with = PlanJson({kGraph, "--budget", "1GiB"})["arena"];
  EXPECT_LE(with, without);
}

TEST_F(PlanCommandTest, BudgetsThatCannotBe) {
  ExpectRefused({kGraph, "--budget", "0"}, "--budget: a budget is at least 1");
  ExpectRefused({kGraph, "--budget", "5M"},
                std::string(kGraph) + ": a budget of 5242880 bytes: every plan needs at least 8388608");
  const Outcome outcome = Plan({kGraph, "--budget", "8388608", "--algorithm", "knapsack"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("no plan found for a budget of 8388608 bytes; the least found needs "));
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
  const std::string other =
      Write("other.json", absl::StrReplaceAll(text, {{"\"operators\": 25", "\"operators\": 26"}}));
  ExpectRefused({"verify", kGraph, other}, other + ": a plan of another graph");
  const std::string odd = Write("odd.json", absl::StrReplaceAll(text, {{"[\"run\",0]", "[\"run\",99]"}}));
  ExpectRefused({"verify", kGraph, odd}, odd + ": action 0: there is no operator 99");
}

TEST_F(PlanCommandTest, GraphsThatAreWrong) {
  ExpectRefused({}, "GRAPH is required");
  ExpectRefused({Path("none")}, Path("none") + ": No such file or directory");
  ExpectRefused({Write("empty", "")}, Path("empty") + ": no JSON");
  ExpectRefused({Write("log", "{\"INSTRUCTION\":\"JUMP\"}\n")}, Path("log") + ":1: 'JUMP' is no instruction");
  const std::string cycle = Write(
      "cycle",
      R"({"format": "hotpack-graph", "version": 1, "storages": [{"name": "a", "bytes": 1}, {"name": "b", "bytes": 1}],
    "operators": [{"name": "f", "cost_ns": 1, "reads": ["a"], "writes": ["b"]},)"
      R"( {"name": "g", "cost_ns": 1, "reads": ["b"], "writes": ["a"]}]})");
  ExpectRefused({cycle}, cycle + ": a cycle: each of these operators needs the next, and the last the first: f, g");
}

TEST_F(PlanCommandTest, NetworksByName) {
  const nlohmann::json plan = PlanJson({"resnet:50,batch=2,image=32", "--budget", "350M", "--algorithm", "search"});
  EXPECT_LE(plan["arena"], 350 << 20);
  const Outcome list = Plan({"--list-generators"});
  EXPECT_EQ(list.code, 0);
  EXPECT_THAT(list.out, HasSubstr("\nresnet:"));
  const Outcome wrong = Plan({"resnet:50,depth=3"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.err, StartsWith("hotpack plan: resnet: "));
}

// Rows by planner, then by budget, from the least: with more memory no planner's time rises.
TEST_F(PlanCommandTest, ASweepIsMonotoneAndDrawn) {
  const Outcome outcome =
      Plan({kGraph, "--sweep", "--points", "6", "--time-limit", "50ms", "--plot", Path("sweep.svg")});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::vector<std::string> lines = absl::StrSplit(outcome.out, '\n', absl::SkipEmpty());
  EXPECT_EQ(lines[0], "algorithm,budget,part,arena,live_peak,time_ns,ratio,bound_ratio,recomputed,swapped");
  std::string algorithm;
  int64_t time = 0, plans = 0;
  for (size_t i = 1; i < lines.size(); ++i) {
    const std::vector<std::string> cells = absl::StrSplit(lines[i], ',');
    ASSERT_EQ(cells.size(), 10u) << lines[i];
    if (cells[0] != algorithm) algorithm = cells[0], time = INT64_MAX;
    if (cells[5].empty()) {
      EXPECT_EQ(time, INT64_MAX) << "none, but with less: " << lines[i];
      continue;
    }
    EXPECT_LE(std::stoll(cells[5]), time) << lines[i];
    EXPECT_LE(std::stoll(cells[3]), std::stoll(cells[1]));
    time = std::stoll(cells[5]);
    ++plans;
  }
  EXPECT_GT(plans, 18);
  EXPECT_THAT(ReadFile(Path("sweep.svg")), HasSubstr(">search</text>"));
  const Outcome both = Plan({kGraph, "--sweep", "--budget", "15M"});
  EXPECT_EQ(both.code, 2);
  EXPECT_THAT(both.err, HasSubstr("--budget excludes --sweep"));
  const Outcome state = Plan({kGraph, "--sweep", "--state", "host"});
  EXPECT_EQ(state.code, 2);
  EXPECT_THAT(state.err, HasSubstr("--state excludes --sweep"));
}

// Checkmate's optimum by a solver, compared with the search.
TEST_F(PlanCommandTest, ASolversPlanOfAnExportedModel) {
  if (RunProgram({"/bin/sh", "-c", "command -v cbc"}, {}).code != 0) GTEST_SKIP() << "cbc is not installed";
  const std::string small = R"({"format": "hotpack-graph", "version": 1,
    "storages": [{"name": "x", "bytes": 512, "given": true}, {"name": "a", "bytes": 1024},)"
                            R"( {"name": "b", "bytes": 1024}, {"name": "c", "bytes": 1024},
                 {"name": "d", "bytes": 512, "kept": true}],
    "operators": [{"name": "f", "cost_ns": 10, "reads": ["x"], "writes": ["a"]},)"
                            R"( {"name": "g", "cost_ns": 20, "reads": ["a"], "writes": ["b"]},
                  {"name": "h", "cost_ns": 30, "reads": ["b"], "writes": ["c"]},)"
                            R"( {"name": "i", "cost_ns": 5, "reads": ["a", "c"], "writes": ["d"]}]})";
  const std::string graph = Write("graph.json", small), model = Path("model.lp"), solution = Path("model.sol"),
                    plan = Path("plan.json");
  const Outcome exported = Plan({"export", graph, "--budget", "2560", "--out", model});
  ASSERT_EQ(exported.code, 0) << exported.err;
  ASSERT_EQ(RunProgram({"cbc", model, "solve", "solution", solution}, {}).code, 0);
  const Outcome solved = Plan({"solved", graph, solution, "--budget", "2560", "--out", plan});
  ASSERT_EQ(solved.code, 0) << solved.err;
  EXPECT_THAT(solved.out, HasSubstr("1 operator again"));
  EXPECT_EQ(Plan({"verify", graph, plan}).code, 0);
  EXPECT_EQ(PlanJson({graph, "--budget", "2560", "--algorithm", "search"})["time"], 75);
  const Outcome none = Plan({"solved", graph, graph, "--budget", "2560"});
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, StartsWith("hotpack plan solved: " + graph + ":1: "));
  EXPECT_EQ(Plan({"export", graph, "--budget", "2560", "--out", model}).err,
            "hotpack plan export: --out " + model + ": is there already; --force writes over it\n");
  EXPECT_EQ(Plan({"export", Path("nothing"), "--budget", "2560"}).err,
            "hotpack plan export: " + Path("nothing") + ": No such file or directory\n");
}

TEST_F(PlanCommandTest, ARecordingWithoutLaunches) {
  const std::string file = HOTPACK_SOURCE_DIR "/tests/data/lstm.csv";
  ExpectRefused({file}, file + ": the recording has no launches (hotpack run --trace FILE --launches)");
}

}  // namespace
