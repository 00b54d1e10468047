// gpu_check's results for programs that lie, fail and hang, and the document that it writes.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "preload/process/option_table.h"
#include "tests/support/subprocess.h"
#include "tests/tools/gpu_check_kit.h"
#include "tools/check/child.h"
#include "tools/check/findings.h"

namespace {

namespace fs = std::filesystem;
using hotpack_test::Outcome;
using hotpack_test::ReadFile;
using hotpack_test::Replaced;
using hotpack_test::RunProgram;
using hotpack_test::TemporaryDirectory;
using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kProbe[] = R"(#!/bin/sh
if [ "$1" = --list ]; then echo "arena  are blocks disjoint?"; exit 0; fi
echo '{"program": "gpu_probe", "findings": [{"name": "arena.values", "result": "RESULT", "expected": "E", "seen": "S"}],
 "figures": [{"name": "arena.map", "unit": "ns", "median": 2, "low": 1, "high": 3, "samples": 9}]}'
exit STATUS
)";

// Stands in for `hotpack run [--simulate] --json-stats FILE -- COMMAND...`.
constexpr char kHotpack[] = R"(#!/bin/sh
while [ "$1" != -- ]; do
  if [ "$1" = --json-stats ]; then stats=$2; fi
  shift
done
shift
echo '{"requests": 1000, "requests_steady": 800, "planned_steady": PLANNED, "steady_iteration": 3, "live_peak": 100,
  "reserved_peak": 120, "driver_memory_calls_steady": 0}' > "$stats"
UNDER_HOTPACK=1 exec "$@"
)";

constexpr char kTrain[] = R"(#!/bin/sh
while [ $# -gt 0 ]; do
  if [ "$1" = --losses ]; then file=$2; fi
  shift
done
[ -n "$file" ] || exit 0
echo 0x1.8p+1 > "$file"
if [ -n "$UNDER_HOTPACK" ]; then echo SECOND >> "$file"; else echo 0x1.7p+1 >> "$file"; fi
)";

class GpuCheckTest : public hotpack_test::GpuCheckKit {
 protected:
  // A kit of gpu_check itself, the simulated device, and the test's additions.
  GpuCheckTest() { fs::create_directory_symlink(HOTPACK_SIMGPU_DIR, Path("kit/lib/simgpu")); }
  Outcome Check(std::vector<std::string> arguments, const std::string& library_path = "") {
    arguments.insert(arguments.begin(), Path("kit/bin/gpu_check"));
    return RunProgram(arguments, {{"LD_LIBRARY_PATH", library_path}, {"LD_PRELOAD", ""}, {"TMPDIR", folder_.path()}});
  }
  Outcome CheckProbes(const std::string& result, const std::string& status) {
    AddProgram("kit/bin/gpu_probe", Replaced(Replaced(kProbe, "RESULT", result), "STATUS", status));
    return Check({"--tiny", "--simulate", "--only", "probes", "--out", Path("out.json")});
  }
  // The findings of the first step with this name; empty if there is none.
  json Findings(const std::string& name) const {
    const json document = Document();
    for (const json& step : document.at("steps")) {
      if (step.at("name") == name) return step.at("findings");
    }
    return json::array();
  }
  json Finding(const std::string& step, const std::string& name) const {
    const json findings = Findings(step);
    for (const json& finding : findings) {
      if (finding.at("name") == name) return finding;
    }
    return {{"result", "no such finding"}};
  }
};

TEST_F(GpuCheckTest, TheDocumentHasWhatItsPageSays) {
  const Outcome outcome = CheckProbes("pass", "0");
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  const json document = Document();
  EXPECT_EQ(document.at("schema"), "hotpack-gpu-check");
  EXPECT_EQ(document.at("schema_version"), 1);
  EXPECT_EQ(document.at("simulated"), true);
  EXPECT_EQ(document.at("complete"), true);
  EXPECT_THAT(document.at("date").get<std::string>(), ::testing::MatchesRegex("....-..-..T..:..:..Z"));
  EXPECT_GT(document.at("seconds"), 0);
  for (const char* key : {"version", "commit", "build_type"}) EXPECT_TRUE(document.at("hotpack").contains(key)) << key;
  for (const char* key : {"mode", "only", "traces", "library_path", "simulate", "step_limit"}) {
    EXPECT_TRUE(document.at("options").contains(key)) << key;
  }
  for (const char* key : {"name", "memory_bytes", "compute_capability"})
    EXPECT_TRUE(document.at("device").contains(key)) << key;
  for (const char* key : {"driver", "cuda_driver_api", "cuda_runtime"})
    EXPECT_TRUE(document.at("versions").contains(key)) << key;
  for (const char* key : {"cpu", "cores", "kernel", "glibc"}) EXPECT_TRUE(document.at("host").contains(key)) << key;
  const json& summary = document.at("summary");
  EXPECT_EQ(summary.at("steps"), document.at("steps").size());
  EXPECT_EQ(summary.at("fail"), 0);
  EXPECT_GE(summary.at("pass"), 2);
  for (const json& step : document.at("steps")) {
    for (const char* key : {"group", "name", "findings", "figures"}) EXPECT_TRUE(step.contains(key)) << step.dump();
    for (const char* key : {"environment", "exit_code", "timed_out", "seconds"}) {
      EXPECT_EQ(step.contains(key), step.contains("command")) << step.dump();
    }
  }
  EXPECT_EQ(Finding("gpu_probe/arena/without", "arena.values").at("seen"), "S");
  EXPECT_EQ(ReadFile(Path("out.json")).find(folder_.path()), std::string::npos) << "a path of this machine";
}

TEST_F(GpuCheckTest, AFailedFindingMakesTheWholeFail) {
  const Outcome outcome = CheckProbes("fail", "1");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.out, HasSubstr("FAILED\n  probes/gpu_probe/arena/without: arena.values"));
  EXPECT_EQ(Document().at("summary").at("fail"), 1)
      << "a status of 1 is what a failed finding makes, not one more failure";
}

TEST_F(GpuCheckTest, ADifferenceIsListedAndFailsNothing) {
  const Outcome outcome = CheckProbes("differs", "0");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.out,
              HasSubstr("the driver DIFFERS from what is documented\n  probes/gpu_probe/arena/without: arena.values"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("hotpack answers differently")));
  EXPECT_EQ(Document().at("summary").at("differs_driver"), 1);
  EXPECT_EQ(Document().at("summary").at("differs_hotpack"), 0);
}

TEST_F(GpuCheckTest, WhatDiffersUnderHotpackIsNotTheDrivers) {
  AddProgram("kit/bin/hotpack", Replaced(kHotpack, "PLANNED", "800"));
  // Without hotpack the finding passes.
  AddProgram("kit/bin/gpu_probe", Replaced(Replaced(kProbe, "STATUS", "0"), "\"RESULT\"",
                                           "'$([ -n \"$UNDER_HOTPACK\" ] && echo '\"differs\"' || echo '\"pass\"')'"));
  const Outcome outcome = Check({"--tiny", "--simulate", "--only", "probes", "--out", Path("out.json")});
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out,
              HasSubstr("hotpack answers differently from the driver\n  probes/gpu_probe/arena/hotpack-vmm: "
                        "arena.values"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("the driver DIFFERS")));
  EXPECT_EQ(Document().at("summary").at("differs_driver"), 0);
  EXPECT_EQ(Document().at("summary").at("differs_hotpack"), 2) << "with either arena";
}

TEST_F(GpuCheckTest, AProgramThatEndsBadlyFailsAndTheOthersGoOn) {
  AddProgram("kit/bin/gpu_probe",
             "#!/bin/sh\n[ \"$1\" = --list ] && printf 'arena\\nvmm\\n' && exit 0\necho lost >&2\nexit 3\n");
  const Outcome outcome = Check({"--tiny", "--simulate", "--only", "probes", "--out", Path("out.json")});
  EXPECT_EQ(outcome.code, 1);
  for (const char* step : {"gpu_probe/arena/without", "gpu_probe/vmm/without"}) {
    EXPECT_EQ(Finding(step, "ended").at("result"), "fail") << step;
    EXPECT_THAT(Finding(step, "ended").at("seen").get<std::string>(), HasSubstr("status 3; lost"));
  }
  // A status of 0 without findings is no success either.
  AddProgram("kit/bin/gpu_probe", "#!/bin/sh\n[ \"$1\" = --list ] && echo arena\nexit 0\n");
  EXPECT_EQ(Check({"--tiny", "--simulate", "--only", "probes", "--out", Path("out.json"), "--force"}).code, 1);
  EXPECT_EQ(Finding("gpu_probe/arena/without", "ended").at("result"), "fail");
}

TEST_F(GpuCheckTest, AHangingProgramIsKilledWithWhatItStarted) {
  AddProgram("kit/bin/gpu_probe", "#!/bin/sh\n[ \"$1\" = --list ] && echo arena && exit 0\nsleep 1000 & echo $! >\"" +
                                      Path("pid") + "\"\nsleep 1000\n");
  const Outcome outcome =
      Check({"--tiny", "--simulate", "--only", "probes", "--step-limit", "0.5", "--out", Path("out.json")});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(Finding("gpu_probe/arena/without", "ended").at("result"), "fail");
  EXPECT_THAT(Finding("gpu_probe/arena/without", "ended").at("seen").get<std::string>(), HasSubstr("killed"));
  const pid_t grandchild = std::stoi(ReadFile(Path("pid")));
  bool gone = false;  // dead, or dead and not yet buried by the init process
  for (int i = 0; i < 100 && !gone; ++i) {
    gone = kill(grandchild, 0) != 0 ||
           ReadFile("/proc/" + std::to_string(grandchild) + "/stat").find(") Z") != std::string::npos;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_TRUE(gone);
}

TEST_F(GpuCheckTest, AnInterruptedCheckKeepsWhatItHas) {
  // The probe sends the signal to the check, which is its parent.
  AddProgram("kit/bin/gpu_probe",
             "#!/bin/sh\n[ \"$1\" = --list ] && printf 'arena\\nvmm\\n' && exit 0\nkill -TERM $PPID\nsleep 1000\n");
  const Outcome outcome = Check({"--tiny", "--simulate", "--out", Path("out.json")});
  EXPECT_EQ(outcome.code, 128 + SIGTERM);
  EXPECT_EQ(Document().at("complete"), false);
  EXPECT_EQ(Finding("gpu_probe/arena/without", "ended").at("result"), "skip");
  EXPECT_EQ(Finding("gpu_probe/vmm/without", "ended").at("result"), "no such finding");
  for (const auto& entry : fs::directory_iterator(folder_.path())) {
    EXPECT_EQ(entry.path().filename().string().find("gpu_check-"), std::string::npos) << "a directory was left behind";
  }
}

TEST_F(GpuCheckTest, LossesAreComparedBitForBit) {
  AddProgram("kit/bin/hotpack", Replaced(kHotpack, "PLANNED", "800"));
  AddProgram("kit/bin/train_mlp", Replaced(kTrain, "SECOND", "0x1.7p+1"));
  const std::vector<std::string> arguments = {"--tiny", "--only", "training", "--out", Path("out.json"), "--force"};
  Outcome outcome = Check(arguments, HOTPACK_FAKE_GPU);
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_EQ(Document().at("simulated"), false);
  EXPECT_EQ(Document().at("device").at("name"), "Fake GPU");
  EXPECT_EQ(Finding("train_mlp/cuda/streams1/without-again", "losses").at("result"), "pass");
  EXPECT_EQ(Finding("train_mlp/cuda/streams1/hotpack-vmm", "losses").at("result"), "pass");
  EXPECT_EQ(Finding("train_mlp/alike/hotpack-vmm", "planned_share").at("result"), "pass");

  AddProgram("kit/bin/train_mlp", Replaced(kTrain, "SECOND", "0x1.70001p+1"));
  outcome = Check(arguments, HOTPACK_FAKE_GPU);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(Finding("train_mlp/cuda/streams1/hotpack-vmm", "losses").at("result"), "fail");
  EXPECT_EQ(Finding("train_mlp/cuda/streams1/hotpack-vmm", "losses").at("seen"), "line 2: 0x1.70001p+1, not 0x1.7p+1");
}

TEST_F(GpuCheckTest, RunsThatDisagreeWithoutHotpackAreNoMeasure) {
  AddProgram("kit/bin/hotpack", Replaced(kHotpack, "PLANNED", "800"));
  // The time in nanoseconds: no two runs agree.
  AddProgram("kit/bin/train_mlp", Replaced(Replaced(kTrain, "0x1.7p+1", "$(date +%N)"), "SECOND", "1"));
  EXPECT_EQ(Check({"--tiny", "--only", "training", "--out", Path("out.json")}, HOTPACK_FAKE_GPU).code, 0);
  EXPECT_EQ(Finding("train_mlp/cuda/streams1/without-again", "losses").at("result"), "skip");
  EXPECT_EQ(Finding("train_mlp/cuda/streams1/hotpack-vmm", "losses").at("result"), "no such finding");
}

TEST_F(GpuCheckTest, TooFewPlannedRequestsFail) {
  AddProgram("kit/bin/hotpack", Replaced(kHotpack, "PLANNED", "791"));  // 98.9 %
  AddProgram("kit/bin/train_mlp", Replaced(kTrain, "SECOND", "0x1.7p+1"));
  EXPECT_EQ(Check({"--tiny", "--only", "training", "--out", Path("out.json")}, HOTPACK_FAKE_GPU).code, 1);
  EXPECT_EQ(Finding("train_mlp/alike/hotpack-vmm", "planned_share").at("result"), "fail");
}

TEST_F(GpuCheckTest, SettingsOfTheCallerDoNotReachThePrograms) {
  AddProgram("kit/bin/gpu_probe",
             "#!/bin/sh\n[ \"$1\" = --list ] && echo arena && exit 0\n! env | grep -Eq '^(HOTPACK|SIMGPU_)' || exit 4\n"
             "exit 0\n");
  const auto seen = [&](const std::map<std::string, std::string>& environment) {
    RunProgram(
        {Path("kit/bin/gpu_check"), "--tiny", "--simulate", "--only", "probes", "--out", Path("out.json"), "--force"},
        environment);
    return Finding("gpu_probe/arena/without", "ended").at("seen").get<std::string>();
  };
  std::map<std::string, std::string> all;  // settings, also of Python's package and those that are not options
#define HOTPACK_VARIABLE(name, variable, ...) variable,
  for (const char* variable : {HOTPACK_OPTIONS(HOTPACK_VARIABLE) "HOTPACK_SHARE", "HOTPACK_HOME", "SIMGPU_MEMORY",
                               "SIMGPU_PEERS", "SIMGPU_ACCESS", "SIMGPU_CONTEXTS", "SIMGPU_CAPTURES", "SIMGPU_VALUES",
                               "SIMGPU_DELAY", "SIMGPU_TIME", "SIMGPU_TIME_FILE", "SIMGPU_COUNT_CALLERS",
                               "SIMGPU_"
                               "OF_A_LATER_VERSION"}) {
    all[variable] = "0";
  }
#undef HOTPACK_VARIABLE
  EXPECT_EQ(seen(all), "no JSON object on its stdout");  // not status 4
}

TEST_F(GpuCheckTest, ADocumentThatIsThereStays) {
  std::ofstream(Path("out.json")) << "mine";
  const Outcome refused = Check({"--tiny", "--simulate", "--only", "facts", "--out", Path("out.json")});
  EXPECT_EQ(refused.code, 2);
  EXPECT_EQ(refused.err, "gpu_check: " + Path("out.json") + " is there already; --force replaces it\n");
  EXPECT_EQ(ReadFile(Path("out.json")), "mine");
  EXPECT_EQ(Check({"--tiny", "--simulate", "--only", "facts", "--out", Path("out.json"), "--force"}).code, 0);
  EXPECT_EQ(Document().at("complete"), true);
}

TEST_F(GpuCheckTest, BadInputIsOneLine) {
  const std::vector<std::vector<std::string>> wrong = {{"--fast"},
                                                       {"--quick", "--tiny"},
                                                       {"--only", "probe"},
                                                       {"--traces", Path("none")},
                                                       {"--traces", Path("kit")},
                                                       {"--step-limit", "0"},
                                                       {"--out", Path("no/such/dir.json")},
                                                       {"extra"}};
  for (std::vector<std::string> arguments : wrong) {
    const Outcome outcome = Check(arguments);
    EXPECT_EQ(outcome.code, 2) << ::testing::PrintToString(arguments);
    EXPECT_THAT(outcome.err, ::testing::MatchesRegex("gpu_check: [^\n]+\n")) << ::testing::PrintToString(arguments);
    EXPECT_EQ(outcome.out, "");
  }
}

TEST_F(GpuCheckTest, WithoutAnyDeviceItSaysSo) {
  fs::remove(Path("kit/lib/simgpu"));
  const Outcome outcome = Check({"--tiny", "--simulate", "--out", Path("out.json")});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(Finding("device", "simulated_device").at("result"), "fail");
}

TEST(ChildTest, EndsAsTheProgramDoes) {
  const TemporaryDirectory scratch;
  const auto run = [&](const std::string& script, double limit = 10) {
    return hotpack::check::RunChild({"sh", "-c", script}, {{"A", "b"}, {"HOME", ""}}, limit, scratch.path());
  };
  EXPECT_EQ(run("exit 7").code, 7);
  EXPECT_EQ(run("kill -SEGV $$").code, 128 + SIGSEGV);
  const auto outcome = run("echo $A${HOME-none}; echo e >&2; cat");
  EXPECT_EQ(outcome.out, "bnone\n");
  EXPECT_EQ(outcome.err, "e\n");
  EXPECT_FALSE(outcome.timed_out);
  const auto late = run("trap '' TERM INT; echo begun; while :; do sleep 1; done", 0.3);
  EXPECT_TRUE(late.timed_out);
  EXPECT_LT(late.seconds, 5);
  EXPECT_EQ(late.out, "begun\n");
  EXPECT_EQ(hotpack::check::RunChild({"/no/such/program"}, {}, 10, scratch.path()).code, 127);
}

// A program that begins and ends processes, as fast as it can, until this goes.
class ShortProcesses {
 public:
  ShortProcesses() : pid_(fork()) {
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    execlp("sh", "sh", "-c", "while :; do (:); done", nullptr);
    _exit(127);
  }
  ~ShortProcesses() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  ShortProcesses(const ShortProcesses&) = delete;
  ShortProcesses& operator=(const ShortProcesses&) = delete;
  bool AreRunning() const { return pid_ > 0 && waitpid(pid_, nullptr, WNOHANG) == 0; }

 private:
  const pid_t pid_;
};

// Reading /proc/PID/stat fails with ESRCH if the process has ended since it was opened.
TEST(ChildTest, OtherProcessesMayEndWhileTheyAreListed) {
  const TemporaryDirectory scratch;
  const ShortProcesses one, two;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  while (std::chrono::steady_clock::now() < end) {
    EXPECT_EQ(hotpack::check::RunChild({"true"}, {}, 10, scratch.path()).code, 0);
  }
  EXPECT_TRUE(one.AreRunning() && two.AreRunning()) << "they are not its leftovers";
}

TEST(FindingsTest, ReadsWhatProgramsTell) {
  using namespace hotpack::check;
  std::string error;
  const std::string object = R"({"program": "p", "findings": [)"
                             R"({"name": "n", "result": "differs", "expected": "e", "seen": "s"}], "figures": []})";
  for (const std::string& text : {object, "a line {\n" + object + "\n", "{not json\n" + object}) {
    const auto found = ParseFindings(text, &error);
    ASSERT_TRUE(found) << text << error;
    EXPECT_EQ(found->findings.at(0).result, Result::kDiffers);
  }
  EXPECT_FALSE(ParseFindings("", &error));
  EXPECT_FALSE(ParseFindings("{\"findings\": []}", &error));
  EXPECT_FALSE(ParseFindings(Replaced(object, "differs", "good"), &error));
  EXPECT_THAT(error, HasSubstr("good"));
}

TEST(FindingsTest, AFigureHasItsMedianAndDeciles) {
  std::vector<double> samples;
  for (int i = 100; i >= 1; --i) samples.push_back(i);
  const hotpack::check::Figure hundred = hotpack::check::Summarize("f", "ns", samples);
  EXPECT_EQ(hundred.median, 50.5);
  EXPECT_EQ(hundred.low, 10);
  EXPECT_EQ(hundred.high, 91);
  const hotpack::check::Figure three = hotpack::check::Summarize("f", "ns", {3, 1, 2});
  EXPECT_EQ(three.median, 2);
  EXPECT_EQ(three.low, 1);
  EXPECT_EQ(three.high, 3);
}

}  // namespace
