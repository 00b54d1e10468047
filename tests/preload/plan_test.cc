// HOTPACK_PLAN and `hotpack run --plan`, from the outside: two runs of a program, and all that can be wrong with the
// file.
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "runtime/persist/plan_file.h"
#include "tests/runtime/test_seed.h"
#include "tests/support/subprocess.h"

namespace {

using hotpack_test::Outcome;
using hotpack_test::ReadFile;
using hotpack_test::TemporaryDirectory;
using testing::HasSubstr;
namespace fs = std::filesystem;

constexpr char kClient[] = HOTPACK_TEST_DIR "/plan_client";
constexpr int kRequests = 5 + 8 * 90;  // of eight steps

class Plan : public testing::Test {
 protected:
  struct Result {
    Outcome outcome;
    nlohmann::json stats;
    int lines = 0;  // of the library's, about plans
  };
  // A program under `hotpack run`, with HOTPACK_PLAN or what else is given in the environment.
  Result Run(const std::vector<std::string>& program, std::map<std::string, std::string> more = {},
             const std::vector<std::string>& options = {}) const {
    std::map<std::string, std::string> environment = {{"LD_LIBRARY_PATH", HOTPACK_TEST_DIR "/stub"},
                                                      {"LD_PRELOAD", hotpack_test::SanitizerPreload()},
                                                      {"HOTPACK", ""},
                                                      {"HOTPACK_TRACE", ""},
                                                      {"HOTPACK_PLAN", ""},
                                                      {"ASAN_OPTIONS", "detect_leaks=0:verify_asan_link_order=0"}};
    for (const auto& [name, value] : more) environment[name] = value;
    std::vector<std::string> command = {HOTPACK_COMMAND, "run", "--json-stats", Path("json")};
    command.insert(command.end(), options.begin(), options.end());
    command.push_back("--");
    command.insert(command.end(), program.begin(), program.end());
    Result result;
    result.outcome = hotpack_test::RunProgram(command, environment);
    const std::string json = ReadFile(Path("json"));
    if (!json.empty()) result.stats = nlohmann::json::parse(json);
    fs::remove(Path("json"));
    std::istringstream lines(result.outcome.err);
    for (std::string line; std::getline(lines, line);) {
      result.lines += line.starts_with("hotpack: ") && line.find("plan") != std::string::npos &&
                      line.find("hotpack: held at most") == std::string::npos;
    }
    return result;
  }
  Result RunWith(const std::string& plan, const std::vector<std::string>& program) const {
    return Run(program, {{"HOTPACK_PLAN", plan}});
  }
  std::string Path(const std::string& name) const { return folder_.path() + "/" + name; }
  std::string ClientPlan() const {  // that of a run of the client
    const Result result = RunWith(Path("made"), {kClient, "run"});
    EXPECT_EQ(result.outcome.code, 0) << result.outcome.err;
    const std::string bytes = ReadFile(Path("made"));
    fs::remove(Path("made"));
    return bytes;
  }
  void Write(const std::string& name, const std::string& bytes) const {
    std::ofstream(Path(name), std::ios::binary) << bytes;
  }
  bool IsPlan(const std::string& name) const {
    hotpack::SavedPlan plan;
    return hotpack::ReadPlanFile(Path(name).c_str(), &plan) == hotpack::PlanFileStatus::kOk;
  }
  std::vector<std::string> Files() const {
    std::vector<std::string> files;
    for (const auto& entry : fs::directory_iterator(folder_.path())) files.push_back(entry.path().filename());
    std::sort(files.begin(), files.end());
    return files;
  }
  static void ExpectServedFromTheFirst(const Result& result, int requests = kRequests, int weights = 5) {
    EXPECT_EQ(result.outcome.code, 0) << result.outcome.err;
    EXPECT_EQ(result.stats["requests"], requests);
    EXPECT_EQ(result.stats["planned"], requests - weights);
    EXPECT_EQ(result.lines, 0) << result.outcome.err;
  }
  static void ExpectServedAsWithout(const Result& result) {
    EXPECT_EQ(result.outcome.code, 0) << result.outcome.err;
    EXPECT_EQ(result.stats["requests"], kRequests);
    EXPECT_GT(result.stats["planned"], 200);
    EXPECT_LT(result.stats["planned"], kRequests - 100);
  }

  TemporaryDirectory folder_;
};

// The file keeps what the run without the plan held, so that a plan that does not pay is no secret.
TEST_F(Plan, APlanThatDoesNotPayIsSaid) {
  const auto run = [&](const char* mode = "run") { return Run({kClient, mode}, {}, {"--plan", Path("plan")}); };
  const auto saved = [&] {
    hotpack::SavedPlan plan;
    EXPECT_EQ(hotpack::ReadPlanFile(Path("plan").c_str(), &plan), hotpack::PlanFileStatus::kOk);
    return plan;
  };
  constexpr char kHint[] = "; without the saved plan it held less, ";
  const Result first = run();
  EXPECT_EQ(first.outcome.code, 0) << first.outcome.err;
  EXPECT_EQ(saved().held_without_bytes, first.stats["reserved_peak"]);
  EXPECT_EQ(saved().live_without_bytes, first.stats["live_peak"]);
  EXPECT_THAT(first.outcome.err, testing::Not(HasSubstr("; no plan was saved")));
  const std::string bytes = ReadFile(Path("plan"));
  const Result second = run();
  ExpectServedFromTheFirst(second);
  EXPECT_THAT(second.outcome.err, testing::Not(HasSubstr(kHint))) << "it holds no more";
  EXPECT_EQ(ReadFile(Path("plan")), bytes);
  EXPECT_THAT(hotpack_test::RunProgram({HOTPACK_COMMAND, "show", Path("plan")}).out,
              HasSubstr("\nwithout it     a run held "));
  hotpack::SavedPlan plan = saved();
  plan.held_without_bytes = 1 << 20;
  ASSERT_EQ(hotpack::WritePlanFile(Path("plan").c_str(), plan), 0);
  EXPECT_THAT(run().outcome.err, HasSubstr(std::string(kHint) + "1.0 MiB: leave --plan out"));
  plan.live_without_bytes = 1;
  ASSERT_EQ(hotpack::WritePlanFile(Path("plan").c_str(), plan), 0);
  EXPECT_THAT(run().outcome.err, testing::Not(HasSubstr(kHint))) << "that run had less to hold";
}

TEST_F(Plan, ARunThatLeavesNoPlanSaysSo) {
  const Result result = Run({kClient, "run", "1"}, {}, {"--plan", Path("plan")});
  EXPECT_FALSE(fs::exists(Path("plan")));
  EXPECT_THAT(result.outcome.err, HasSubstr("; no plan was saved"));
}

TEST_F(Plan, TheSecondRunIsServedFromTheFirstIteration) {
  const Result first = RunWith(Path("plan"), {kClient, "run"});
  ExpectServedAsWithout(first);
  EXPECT_EQ(first.lines, 0) << first.outcome.err;
  EXPECT_THAT(Files(), testing::ElementsAre("plan"));
  const std::string bytes = ReadFile(Path("plan"));
  const Result second = RunWith(Path("plan"), {kClient, "run"});
  ExpectServedFromTheFirst(second);
  EXPECT_LE(second.stats["steady_iteration"], 1);
  EXPECT_GE(second.stats["steady_iteration"], 0);
  EXPECT_EQ(ReadFile(Path("plan")), bytes) << "what is right is not written again";
  const auto shown = hotpack_test::RunProgram({HOTPACK_COMMAND, "show", Path("plan")});
  EXPECT_EQ(shown.code, 0);
  EXPECT_THAT(shown.out, HasSubstr("plan_client"));
  EXPECT_THAT(shown.out, HasSubstr("90 of 90 planned"));
  EXPECT_THAT(shown.out, HasSubstr("after 5"));
}

TEST_F(Plan, TheOptionOfRun) {
  EXPECT_EQ(Run({kClient, "run"}, {}, {"--plan", Path("plan")}).outcome.code, 0);
  ExpectServedFromTheFirst(Run({kClient, "run"}, {{"HOTPACK_PLAN", "/nowhere"}}, {"--plan", Path("plan")}));
  // Relative to where the command runs, not the program.
  const std::string change = "cd / && exec " + std::string(kClient) + " run";
  const std::string here = fs::current_path();
  fs::current_path(folder_.path());
  ExpectServedFromTheFirst(Run({"sh", "-c", change}, {}, {"--plan", "plan"}));
  fs::current_path(here);
  Write("thesis", "my thesis");
  for (const char* bad : {"thesis", "no/such/folder", ""}) {
    const Result refused = Run({kClient, "run"}, {}, {"--plan", Path(bad)});
    EXPECT_EQ(refused.outcome.code, 2) << bad;
    EXPECT_EQ(std::count(refused.outcome.err.begin(), refused.outcome.err.end(), '\n'), 1) << refused.outcome.err;
    EXPECT_THAT(refused.outcome.err, HasSubstr("--plan")) << bad;
  }
  EXPECT_EQ(ReadFile(Path("thesis")), "my thesis");
}

TEST_F(Plan, ShowRefusesWhatIsDamaged) {
  std::string bytes = ClientPlan();
  bytes[600] = static_cast<char>(bytes[600] ^ 1);
  Write("plan", bytes);
  const auto shown = hotpack_test::RunProgram({HOTPACK_COMMAND, "show", Path("plan")});
  EXPECT_EQ(shown.code, 2);
  EXPECT_EQ(shown.err, "hotpack show: " + Path("plan") + ": it is damaged\n");
}

TEST_F(Plan, AKilledJobLeavesItsPlan) {
  const Result killed = RunWith(Path("plan"), {kClient, "kill"});
  EXPECT_EQ(killed.outcome.code, 128 + SIGKILL);
  EXPECT_TRUE(IsPlan("plan"));
  ExpectServedFromTheFirst(RunWith(Path("plan"), {kClient, "run"}));
}

TEST_F(Plan, WhatIsDamagedIsSaidOnceAndReplaced) {
  const std::string good = ClientPlan();
  std::string flipped = good, newer = good;
  flipped[700] = static_cast<char>(flipped[700] ^ 4);
  newer[8] = 9;
  const std::pair<std::string, const char*> cases[] = {{flipped, "damaged"},
                                                       {good.substr(0, 1000), "damaged"},
                                                       {newer, "another version"},
                                                       {good.substr(0, 8), "damaged"}};
  for (const auto& [bytes, reason] : cases) {
    Write("plan", bytes);
    const Result result = RunWith(Path("plan"), {kClient, "run"});
    ExpectServedAsWithout(result);
    EXPECT_EQ(result.lines, 1) << result.outcome.err;
    EXPECT_THAT(result.outcome.err, HasSubstr(reason));
    EXPECT_TRUE(IsPlan("plan"));
  }
}

TEST_F(Plan, WhatIsNoPlanIsLeftAlone) {
  Write("plan", "my thesis");
  const Result result = RunWith(Path("plan"), {kClient, "run"});
  ExpectServedAsWithout(result);
  EXPECT_EQ(result.lines, 1) << result.outcome.err;
  EXPECT_THAT(result.outcome.err, HasSubstr("left alone"));
  EXPECT_EQ(ReadFile(Path("plan")), "my thesis");
}

TEST_F(Plan, APathThatCannotBeWrittenIsSaidOnce) {
  Write("file", "x");
  for (const std::string& path : {Path("missing/plan"), Path("file/plan"), folder_.path(), std::string("/dev/null")}) {
    const Result result = RunWith(path, {kClient, "run"});
    ExpectServedAsWithout(result);
    EXPECT_EQ(result.lines, 1) << path << ": " << result.outcome.err;
    EXPECT_THAT(result.outcome.err, HasSubstr(path));
  }
}

// Twice as large everywhere: another batch size.
TEST_F(Plan, AnotherProgramIsSaidOnceAndTakesOver) {
  Write("plan", ClientPlan());
  const Result other = RunWith(Path("plan"), {kClient, "run", "20", "2"});
  EXPECT_EQ(other.outcome.code, 0);
  EXPECT_EQ(other.lines, 1) << other.outcome.err;
  EXPECT_THAT(other.outcome.err, HasSubstr("does not fit"));
  const Result without = Run({kClient, "run", "20", "2"});
  EXPECT_EQ(other.stats["planned"], without.stats["planned"]);
  EXPECT_EQ(other.stats["reserved_peak"], without.stats["reserved_peak"]);
  ExpectServedFromTheFirst(RunWith(Path("plan"), {kClient, "run", "20", "2"}), 5 + 20 * 90);
}

// Blocks of 1 MiB and more, at the places of a plan that was made without HOTPACK_ALIGNMENT.
TEST_F(Plan, AnUnalignedPlanIsSaidOnceAndReplaced) {
  const std::vector<std::string> program = {kClient, "run", "8", "16"};
  EXPECT_EQ(RunWith(Path("plan"), program).lines, 0);
  ExpectServedFromTheFirst(RunWith(Path("plan"), program));
  const std::map<std::string, std::string> aligned = {{"HOTPACK_PLAN", Path("plan")}, {"HOTPACK_ALIGNMENT", "65536"}};
  const Result result = Run(program, aligned);
  ExpectServedAsWithout(result);
  EXPECT_EQ(result.lines, 1) << result.outcome.err;
  EXPECT_THAT(result.outcome.err, HasSubstr("the plan in " + Path("plan") +
                                            " is not used: its blocks are not aligned "
                                            "to 65536 bytes (HOTPACK_ALIGNMENT)\n"));
  hotpack::SavedPlan plan;
  ASSERT_EQ(hotpack::ReadPlanFile(Path("plan").c_str(), &plan), hotpack::PlanFileStatus::kOk);
  EXPECT_TRUE(hotpack::IsAligned(plan, 65536));
  ExpectServedFromTheFirst(Run(program, aligned));
  ExpectServedFromTheFirst(RunWith(Path("plan"), program));  // what is aligned to more is aligned to less
}

TEST_F(Plan, ARelativePathIsMeantFromWhereTheProgramBegan) {
  const std::string here = fs::current_path();
  fs::current_path(folder_.path());
  RunWith("plan", {kClient, "leave"});
  fs::current_path(here);
  EXPECT_TRUE(IsPlan("plan"));
}

TEST_F(Plan, TwoContexts) {
  RunWith(Path("plan"), {kClient, "contexts"});
  EXPECT_THAT(Files(), testing::ElementsAre("plan", "plan.2"));
  ExpectServedFromTheFirst(RunWith(Path("plan"), {kClient, "contexts"}), 2 * kRequests, 10);
  RunWith(Path("by-device.%d"), {kClient, "contexts"});
  EXPECT_TRUE(IsPlan("by-device.0"));
  EXPECT_TRUE(IsPlan("by-device.0.2"));
}

// A context that is created again has the name of the previous one, and so its plan.
TEST_F(Plan, AContextMadeAnew) {
  const Result result = RunWith(Path("plan"), {kClient, "reset"});
  EXPECT_EQ(result.outcome.code, 0) << result.outcome.err;
  EXPECT_THAT(Files(), testing::ElementsAre("plan"));
  const Result second = RunWith(Path("plan"), {kClient, "reset"});
  ExpectServedFromTheFirst(second, 2 * kRequests, 10);
}

TEST_F(Plan, AForkedChild) {
  const Result result = RunWith(Path("plan"), {kClient, "fork"});
  EXPECT_EQ(result.outcome.code, 0) << result.outcome.err;
  EXPECT_EQ(result.lines, 0);
  EXPECT_THAT(Files(), testing::ElementsAre("plan"));
  ExpectServedFromTheFirst(RunWith(Path("plan"), {kClient, "run"}));
}

TEST_F(Plan, Names) {
  const std::pair<std::map<std::string, std::string>, const char*> ranks[] = {
      {{}, "0"},
      {{{"RANK", "3"}, {"SLURM_PROCID", "4"}}, "3"},
      {{{"OMPI_COMM_WORLD_RANK", "5"}}, "5"},
      {{{"SLURM_PROCID", "6"}}, "6"},
      {{{"PMI_RANK", "7"}}, "7"},
      {{{"RANK", "../../etc"}, {"PMI_RANK", "8"}}, "8"},
  };
  for (const auto& [variables, rank] : ranks) {
    std::map<std::string, std::string> environment = {
        {"RANK", ""}, {"OMPI_COMM_WORLD_RANK", ""}, {"SLURM_PROCID", ""}, {"PMI_RANK", ""}};
    for (const auto& [name, value] : variables) environment[name] = value;
    environment["HOTPACK_PLAN"] = Path("r%r.d%d.%%.%x");
    Run({kClient, "run"}, environment);
    EXPECT_TRUE(IsPlan(std::string("r") + rank + ".d0.%.%x")) << testing::PrintToString(Files());
  }
  Run({kClient, "run"}, {{"HOTPACK_PLAN", Path("pid.%p")}});
  EXPECT_THAT(Files(), testing::Contains(testing::MatchesRegex("pid\\.[0-9]+")));
}

TEST_F(Plan, TheCInterface) {
  Write("thesis", "my thesis");
  const Result result = Run({kClient, "save", folder_.path()});
  EXPECT_EQ(result.outcome.code, 0) << result.outcome.err;
  EXPECT_EQ(result.lines, 0);
  EXPECT_THAT(Files(), testing::ElementsAre("a", "b.0", "thesis"));
  ExpectServedFromTheFirst(RunWith(Path("b.%d"), {kClient, "run"}));
}

// Killed at any moment: then the file is a plan, or does not exist yet.
TEST_F(Plan, KilledAtAnyMoment) {
  std::mt19937_64 random(hotpack::TestSeed());
  int plans = 0;
  for (int round = 0; round < 20; ++round) {
    if (round % 4 == 0) fs::remove(Path("plan"));
    const pid_t pid = fork();
    if (pid == 0) {
      setenv("LD_PRELOAD", (hotpack_test::SanitizerPreload() + HOTPACK_PRELOAD).c_str(), 1);
      setenv("LD_LIBRARY_PATH", HOTPACK_TEST_DIR "/stub", 1);
      setenv("HOTPACK_PLAN", Path("plan").c_str(), 1);
      setenv("ASAN_OPTIONS", "detect_leaks=0:verify_asan_link_order=0", 1);
      execl(kClient, kClient, "forever", "0", round % 2 == 0 ? "1" : "2", nullptr);
      _exit(127);
    }
    usleep(static_cast<useconds_t>(random() % 100000));
    kill(pid, SIGKILL);
    int status = 0;
    waitpid(pid, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status));
    const bool there = fs::exists(Path("plan"));
    EXPECT_TRUE(!there || IsPlan("plan"));
    plans += there;
  }
  EXPECT_GT(plans, 0);
}

#ifdef HOTPACK_HAVE_SIMGPU
class PlanOnSimulatedDevice : public Plan, public testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, PlanOnSimulatedDevice, testing::Values("mlp-adam", "cnn-carried", "lstm"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST_P(PlanOnSimulatedDevice, TheFirstIterationIsPlanned) {
  const std::string trace = HOTPACK_SOURCE_DIR "/tests/data/" + std::string(GetParam()) + ".csv";
  // Plans in real time (the program itself waits for them, after each step), and in logical time. There the time steps
  // of a recurrent network are planned before the first iteration ends.
  for (const auto& [state, logical] :
       {std::pair(false, "0"), std::pair(true, "0"), std::pair(false, "1"), std::pair(true, "1")}) {
    SCOPED_TRACE(std::string(state ? "with weights and optimizer state" : "the iteration alone") +
                 ", HOTPACK_WAIT_PLAN=" + logical);
    std::vector<std::string> program = {HOTPACK_COMMAND, "replay", trace, "--repeat", "6", "--wait-plan"};
    if (state) program.insert(program.end(), {"--weights", "60M", "--optimizer-state", "60M"});
    const std::map<std::string, std::string> plan = {
        {"HOTPACK_PLAN", Path(std::string(state ? "with" : "without") + logical)},
        {"LD_LIBRARY_PATH", ""},
        {"HOTPACK_WAIT_PLAN", logical}};
    const Result first = Run(program, plan, {"--simulate"});
    const Result second = Run(program, plan, {"--simulate"});
    for (const Result* result : {&first, &second}) {
      ASSERT_EQ(result->outcome.code, 0) << result->outcome.err;
      EXPECT_EQ(result->stats["checker_reports"], 0);
      EXPECT_EQ(result->lines, 0) << result->outcome.err;
    }
    const auto requests = second.stats["requests"].get<int64_t>(), planned = second.stats["planned"].get<int64_t>();
    const auto peak = second.stats["live_peak"].get<int64_t>();
    // Requests that are not planned: weights, optimizer state, and those before the recording's first step.
    EXPECT_LE(requests - planned, first.stats["retained"].get<int64_t>() + 8) << second.outcome.err;
    EXPECT_GT(planned, first.stats["planned"].get<int64_t>());
    EXPECT_GE(second.stats["steady_iteration"], 0);
    EXPECT_LE(second.stats["steady_iteration"], 1);
    EXPECT_LE(second.stats["reserved_peak"].get<int64_t>(), peak + peak / 20 + (4 << 20));
  }
}
#endif

}  // namespace
