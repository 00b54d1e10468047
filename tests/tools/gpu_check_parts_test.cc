// The parts of gpu_check: their order, their limits, and a document that is whole at every moment.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/subprocess.h"
#include "tests/tools/gpu_check_kit.h"
#include "tools/check/child.h"
#include "tools/check/session.h"
#include "tools/check/steps.h"
#include "tools/cli/child_process.h"

namespace {

namespace fs = std::filesystem;
using hotpack_test::Outcome;
using hotpack_test::ReadFile;
using hotpack_test::Replaced;
using hotpack_test::RunProgram;
using hotpack_test::TemporaryDirectory;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

constexpr char kList[] = R"(#!/bin/sh
if [ "$1" = --list ]; then printf 'lookups\ninfo\ncoverage\ngrowth_2\ngrowth_20\ngrowth_64\noverlap\ncapture\nsharing\n'
  printf 'late_frees\nnearly_full\narena\nvmm\n'; exit 0; fi
)";
constexpr char kGood[] = R"(echo "{\"program\": \"gpu_probe\", \"findings\": [{\"name\": \"$2\", \"result\": \"pass\",
 \"expected\": \"E\", \"seen\": \"S\"}], \"figures\": [FIGURES]}"
)";
constexpr char kHotpack[] = R"(#!/bin/sh
while [ "$1" != -- ]; do shift; done
shift
UNDER_HOTPACK=1 exec "$@"
)";

// Stands in for Python: what imports PyTorch, gpu_parts.py, and train.py with at most $limit rows.
constexpr char kPython[] = R"(#!/bin/sh
if [ "$1" = -c ]; then printf '2.11.0\n13.0\nresnet50\n'; exit 0; fi
part=$2
while [ $# -gt 0 ]; do
  case $1 in --allocator) allocator=$2 ;; --losses) losses=$2 ;; --stats) stats=$2 ;; --batch) rows=$2 ;; esac
  shift
done
if [ -n "$rows" ]; then
  case $allocator in default) most=100 ;; hotpack) most=130 ;; expandable) most=120 ;; esac
  [ "$rows" -le $most ] && exit 0
  exit 3
fi
[ -z "$losses" ] || case $allocator in hotpack) echo OURS ;; *) echo 0x1p+1 ;; esac > "$losses"
[ "$allocator" != hotpack ] || [ -z "$stats" ] || echo '{"requests_steady": 10, "planned_steady": 10,
  "steady_iteration": 3, "live_peak": 100000000, "reserved_peak": HELD}' > "$stats"
echo '{"findings": [], "figures": [{"name": "step", "unit": "ms", "median": 2, "low": 2, "high": 2, "samples": 1},
 {"name": "reserved", "unit": "bytes", "median": 110000000, "low": 1, "high": 1, "samples": 1}]}'
)";

bool Gone(pid_t pid) {  // or dead, and not yet reaped
  for (int i = 0; i < 200; ++i) {
    if (kill(pid, 0) != 0 || ReadFile("/proc/" + std::to_string(pid) + "/stat").find(") Z") != std::string::npos)
      return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

class GpuCheckPartsTest : public hotpack_test::GpuCheckKit {
 protected:
  GpuCheckPartsTest() {
    AddProgram("kit/bin/hotpack", kHotpack);
    AddProbe(Replaced(kGood, "FIGURES", ""));
  }
  void AddProbe(const std::string& text) { AddProgram("kit/bin/gpu_probe", kList + text); }
  void AddPython(const std::string& loss, const std::string& held) {
    fs::create_directories(Path("kit/bench/torch"));
    std::ofstream(Path("kit/bench/torch/train.py")) << "";
    AddProgram("python", Replaced(Replaced(kPython, "OURS", loss), "HELD", held));
  }
  std::map<std::string, std::string> Environment() const {
    return {{"LD_LIBRARY_PATH", HOTPACK_FAKE_GPU},
            {"LD_PRELOAD", ""},
            {"TMPDIR", folder_.path()},
            {"HOTPACK_TORCH_PYTHON", Path("python")}};
  }
  std::vector<std::string> Command(const std::vector<std::string>& more) const {
    std::vector<std::string> command = {Path("kit/bin/gpu_check"), "--force", "--out", Path("out.json")};
    command.insert(command.end(), more.begin(), more.end());
    return command;
  }
  Outcome Check(const std::vector<std::string>& more) const { return RunProgram(Command(more), Environment()); }
  json Step(const std::string& group, const std::string& name) const {
    const json document = Document();
    for (const json& step : document.at("steps")) {
      if (step.at("group") == group && step.at("name") == name) return step;
    }
    return {{"findings", json::array()}, {"figures", json::array()}};
  }
  static json Named(const json& list, const std::string& name) {
    for (const json& each : list) {
      if (each.at("name") == name) return each;
    }
    return json::object();
  }
  std::string Result(const std::string& group, const std::string& step, const std::string& finding) const {
    return Named(Step(group, step).at("findings"), finding).value("result", "none");
  }
};

TEST_F(GpuCheckPartsTest, PartsComeInTheirOrderAndSayWhatIsMissing) {
  const Outcome outcome = Check({"--tiny"});
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  std::vector<std::string> groups;
  const json document = Document();
  for (const json& step : document.at("steps")) {
    const std::string group = step.at("group");
    if (std::find(groups.begin(), groups.end(), group) == groups.end()) groups.push_back(group);
  }
  EXPECT_THAT(groups, ElementsAre("facts", "pointers", "enable", "growth", "overlap", "captures", "distributed",
                                  "sharing", "ends", "nearly_full", "probes", "pytorch", "budget", "training", "timing",
                                  "largest", "collectors", "benchmarks", "traces"));
  for (const char* part : {"enable", "distributed"}) {
    bool said = false;
    for (const json& step : document.at("steps")) {
      if (step.at("group") != part) continue;
      const std::string seen = step.at("findings").at(0).at("seen");
      said = said || seen == "bench/torch is not here";
      EXPECT_EQ(std::count(seen.begin(), seen.end(), '\n'), 0);
    }
    EXPECT_TRUE(said) << part;
  }
  // Each case runs once: in its part, or in `probes`.
  EXPECT_EQ(Result("captures", "gpu_probe/capture/hotpack-vmm", "capture"), "pass");
  EXPECT_EQ(Result("probes", "gpu_probe/capture/hotpack-vmm", "ended"), "none");
  EXPECT_EQ(Result("probes", "gpu_probe/vmm/hotpack", "ended"), "pass");
}

TEST(PartsTest, LimitsAreThoseOfTheFirstFiveMinutes) {
  double sum = 0;
  size_t parts = 0;
  for (const hotpack::check::Group& group : hotpack::check::kGroups) {
    sum += group.limit;
    parts += group.limit > 0 ? 1 : 0;
    EXPECT_TRUE(group.limit > 0 || parts == 10) << group.name << ": parts come first";
  }
  EXPECT_EQ(parts, 10u);
  EXPECT_LE(sum, 300);
}

TEST_F(GpuCheckPartsTest, APartEndsAtItsLimit) {
  // pointers: seven runs of 4 s, with 10 s for all.
  AddProbe("sleep 4\n" + Replaced(kGood, "FIGURES", ""));
  const Outcome outcome = Check({"--quick", "--only", "pointers", "--only", "traces"});
  EXPECT_EQ(outcome.code, 0) << outcome.out;
  EXPECT_EQ(Result("pointers", "gpu_probe/lookups/hotpack", "ended"), "pass");
  EXPECT_THAT(Named(Step("pointers", "gpu_probe/info/without").at("findings"), "ended").value("seen", ""),
              HasSubstr("stopped after"));
  EXPECT_EQ(Result("pointers", "gpu_probe/coverage/hotpack-plain", "run"), "skip");
  EXPECT_LT(Document().at("seconds"), 20);
  EXPECT_EQ(Result("traces", "all", "run"), "skip") << "the groups after it go on";
}

// What the stand-in has told by then is in the document, wherever the check is killed.
TEST_F(GpuCheckPartsTest, KilledAtAnyMomentTheDocumentIsWhole) {
  AddProbe("for i in 1 2 3; do echo \"finding: pass f$i; expected E; seen S\" >&2; echo x >>" + Path("told") +
           "; sleep 0.2; done\n" + Replaced(kGood, "FIGURES", ""));
  size_t most = 0, running = 0;
  for (const int milliseconds : {5, 20, 60, 150, 400, 900, 1500, 2500}) {
    fs::remove(Path("told"));
    fs::remove(Path("out.json"));
    const pid_t pid = fork();
    if (pid == 0) hotpack::Execute(Command({"--tiny", "--only", "pointers"}), Environment(), Path("o"), Path("e"));
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    // A finding is in the document a quarter of a second after the program told it, or earlier.
    const std::string told = ReadFile(Path("told"));
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds >= 150 ? 600 : 0));
    kill(pid, SIGKILL);
    ASSERT_EQ(waitpid(pid, nullptr, 0), pid);
    if (!fs::exists(Path("out.json"))) {
      EXPECT_LT(milliseconds, 150) << "the document is made at once";
      continue;
    }
    const json document = json::parse(ReadFile(Path("out.json")), nullptr, false);
    ASSERT_FALSE(document.is_discarded()) << "after " << milliseconds << " ms";
    EXPECT_EQ(document.at("complete"), false);
    EXPECT_EQ(document.at("schema"), "hotpack-gpu-check");
    size_t passed = 0;
    for (const json& step : document.at("steps")) {
      for (const json& finding : step.at("findings")) {
        passed += finding.at("result") == "pass" && finding.at("name") != "device" ? 1 : 0;
        running += finding.at("seen") == "it was running at this moment" ? 1 : 0;
      }
      EXPECT_LE(step.at("findings").size(), 6u) << step.dump();
    }
    // A run that has ended has its object's finding and `ended` instead of its three lines.
    const auto lines = static_cast<size_t>(std::count(told.begin(), told.end(), 'x'));
    EXPECT_GE(3 * passed, 2 * lines) << "after " << milliseconds << " ms";
    most = std::max(most, passed);
  }
  EXPECT_GE(most, 5u);
  EXPECT_GE(running, 2u) << "the step that was running is named";
}

TEST_F(GpuCheckPartsTest, AKilledProgramKeepsWhatItHasTold) {
  AddProbe("trap '' TERM\necho 'finding: differs told.first; expected E; with ;; seen S' >&2\nsleep 1000\n");
  const Outcome outcome = Check({"--tiny", "--only", "pointers/gpu_probe/info/without", "--step-limit", "1"});
  EXPECT_EQ(outcome.code, 1);
  const json findings = Step("pointers", "gpu_probe/info/without").at("findings");
  EXPECT_EQ(Named(findings, "told.first").value("result", ""), "differs");
  EXPECT_EQ(Named(findings, "told.first").value("expected", ""), "E; with ;");
  EXPECT_EQ(Named(findings, "told.first").value("seen", ""), "S");
  EXPECT_THAT(Named(findings, "ended").value("seen", ""), HasSubstr("killed"));
}

TEST_F(GpuCheckPartsTest, AStuckProgramIsKilledWithAllBelowIt) {
  // One process in a session of its own; all ignore SIGTERM.
  AddProbe("trap '' TERM HUP INT\nsetsid sh -c 'trap \"\" TERM HUP INT; echo $$ >" + Path("pid") +
           "; sleep 1000' &\nsleep 1000\n");
  const Clock::time_point begin = Clock::now();
  Check({"--tiny", "--only", "pointers/gpu_probe/info/without", "--step-limit", "0.5"});
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(10));
  EXPECT_EQ(Result("pointers", "gpu_probe/info/without", "ended"), "fail");
  EXPECT_TRUE(Gone(std::stoi(ReadFile(Path("pid")))));
}

// A child that SIGKILL does not end, as in a call of a driver that hangs: its tracer does not let its parent know.
TEST(WaitUntilTest, GivesUpAChildThatCannotBeKilled) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    for (;;) pause();
  }
  const pid_t tracer = fork();
  if (tracer == 0) {
    const char answer = ptrace(PTRACE_SEIZE, child, nullptr, nullptr) == 0 ? 'y' : 'n';
    if (write(ready[1], &answer, 1) != 1) _exit(1);
    for (;;) pause();  // never waits for the child
  }
  char answer = 'n';
  ASSERT_EQ(read(ready[0], &answer, 1), 1);
  const Clock::time_point begin = Clock::now();
  const auto end = hotpack::WaitUntil(child, begin + std::chrono::milliseconds(100));
  const auto waited = Clock::now() - begin;
  kill(tracer, SIGKILL);
  waitpid(tracer, nullptr, 0);
  ASSERT_TRUE(end);
  EXPECT_TRUE(end->timed_out);
  EXPECT_LT(waited, std::chrono::seconds(9));
  if (answer == 'y') {
    EXPECT_TRUE(end->given_up);
    EXPECT_EQ(hotpack::ExitCode(end->status), 128 + SIGKILL);
    waitpid(child, nullptr, 0);
  }
}

TEST(WaitUntilTest, LetsAChildWriteWhatItHas) {
  const TemporaryDirectory scratch;
  const auto outcome = hotpack::check::RunChild({"sh", "-c", "trap 'echo last words; exit 5' TERM; sleep 100 & wait"},
                                                {}, 0.3, scratch.path());
  EXPECT_TRUE(outcome.timed_out);
  EXPECT_FALSE(outcome.given_up);
  EXPECT_EQ(outcome.out, "last words\n");
  EXPECT_EQ(outcome.code, 5);
}

TEST_F(GpuCheckPartsTest, OverlapIsComparedWithTheDrivers) {
  const std::string figure = R"({\"name\": \"overlap.async\", \"unit\": \"share\", \"median\": $share, \"low\": 0,
 \"high\": 1, \"samples\": 3})";
  for (const auto& [ours, result] : {std::pair{"0.77", "pass"}, std::pair{"0.75", "fail"}}) {
    AddProbe(std::string("share=0.8; [ -z \"$UNDER_HOTPACK\" ] || share=") + ours + "\n" +
             Replaced(kGood, "FIGURES", figure));
    EXPECT_EQ(Check({"--tiny", "--only", "overlap/gpu_probe"}).code, std::string(result) == "fail" ? 1 : 0);
    EXPECT_EQ(Result("overlap", "gpu_probe/overlap/hotpack", "overlap_kept"), result);
  }
}

TEST_F(GpuCheckPartsTest, LossesAndMemoryOfEnableAreCompared) {
  AddPython("0x1p+1", "105000000");
  EXPECT_EQ(Check({"--quick", "--only", "enable"}).code, 0) << ReadFile(Path("out.json"));
  EXPECT_EQ(Result("enable", "torch/training/expandable", "losses"), "pass");
  EXPECT_EQ(Result("enable", "torch/training/hotpack", "losses"), "pass");
  EXPECT_EQ(Result("enable", "torch/training/hotpack", "below_default"), "pass");
  const json ratios = Step("enable", "torch/training/ratios").at("figures");
  EXPECT_NEAR(Named(ratios, "memory, hotpack / default").value("median", 0.0), 105.0 / 110, 1e-9);

  AddPython("0x1.1p+1", "118000000");
  EXPECT_EQ(Check({"--quick", "--only", "enable"}).code, 1);
  EXPECT_EQ(Result("enable", "torch/training/hotpack", "losses"), "fail");
  EXPECT_EQ(Result("enable", "torch/training/hotpack", "below_default"), "fail");
  EXPECT_EQ(Result("enable", "torch/training/hotpack", "below_expandable"), "fail");
}

TEST_F(GpuCheckPartsTest, TheLargestBatchIsFoundToASixteenth) {
  AddPython("0x1p+1", "105000000");
  EXPECT_EQ(Check({"--only", "largest"}).code, 0) << ReadFile(Path("out.json"));
  const json rows = Step("largest", "resnet50/rows").at("figures");
  for (const auto& [allocator, most] : {std::pair{"default", 100}, {"hotpack", 130}, {"expandable", 120}}) {
    const double found = Named(rows, allocator).value("median", 0.0);
    EXPECT_LE(found, most) << allocator;
    EXPECT_GE(found, most * 15 / 16) << allocator;
  }
  EXPECT_EQ(Check({"--quick", "--only", "largest"}).code, 0);
  EXPECT_EQ(Result("largest", "all", "run"), "skip");
}

}  // namespace
