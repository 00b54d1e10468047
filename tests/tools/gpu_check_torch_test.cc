// gpu_check's results for benchmarks and PyTorch's models: stand-ins that fail, differ, hold too much, or are missing.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/subprocess.h"
#include "tests/tools/gpu_check_kit.h"
#include "tools/check/google_benchmark.h"
#include "tools/check/session.h"

namespace {

namespace fs = std::filesystem;
using hotpack_test::Outcome;
using hotpack_test::ReadFile;
using hotpack_test::Replaced;
using hotpack_test::RunProgram;
using hotpack_test::TemporaryDirectory;
using nlohmann::json;
using ::testing::HasSubstr;

// Stands in for `hotpack run --json-stats FILE -- COMMAND...`.
constexpr char kHotpack[] = R"(#!/bin/sh
while [ "$1" != -- ]; do
  if [ "$1" = --json-stats ]; then stats=$2; fi
  shift
done
shift
echo '{"requests": 1000, "requests_steady": 800, "planned_steady": PLANNED,)"
                            R"( "steady_iteration": 3, "live_peak": 100000000,
  "reserved_peak": HELD, "reserved_steady": HELD, "driver_memory_calls_steady": 0}' > "$stats"
exec "$@"
)";

// Stands in for Python: what imports PyTorch and lists the models, and what train.py writes. PyTorch's allocator holds
// 130 MB, with expandable segments 110 MB.
constexpr char kPython[] = R"(#!/bin/sh
if [ "$1" = -c ]; then printf '2.11.0\n13.0\nresnet50\nmoe\n'; exit 0; fi
model=$2
while [ $# -gt 0 ]; do
  case $1 in --json) out=$2 ;; --losses) losses=$2 ;; --allocator) allocator=$2 ;; esac
  shift
done
held=null; loss=0x1p+1; more=; static=true
[ "$model" != seq2seq ] || static=false
case $allocator in
  default) held=130000000; loss=PLAIN ;;
  expandable) held=110000000 ;;
  preload) loss=OURS ;;
  hotpack) peak=105000000
    [ -z "$HOTPACK_BUDGET" ] || peak=WITHIN
    more=', "hotpack": {"requests_steady": 10, "planned_steady": 10,
    "moved_bytes": 1000, "recomputed_bytes": 500, "predicted_time": 1.05,)"
                           R"( "steady_iteration": 3, "live_peak": 100000000,
    "reserved_peak": '$peak', "reserved_steady": 105000000, "driver_memory_calls_steady": 0}' ;;
esac
echo $loss > "$losses"
echo '{"settings": {"static": '$static'}, "figures": {"step_ms": 2.5, "torch_reserved_peak": '$held$more'}}' > "$out"
)";

// Stands in for a benchmark: writes DOCUMENT where --benchmark_out says.
constexpr char kBenchmark[] = R"(#!/bin/sh
for argument; do
  case $argument in --benchmark_out=*) cat > "${argument#*=}" <<'END'
DOCUMENT
END
  esac
done
exit STATUS
)";

constexpr char kTimes[] = R"({"context": {}, "benchmarks": [
 {"name": "OnScriptPair", "run_name": "OnScriptPair", "run_type": "iteration", "real_time": 20.0, "time_unit": "ns"},
 {"name": "OnScriptPair", "run_name": "OnScriptPair", "run_type": "iteration", "real_time": 40.0, "time_unit": "ns"},
 {"name": "OnScriptPair_cv", "run_name": "OnScriptPair", "run_type": "aggregate",)"
                          R"( "real_time": 9e9, "time_unit": "ns", "waits": NaN},
 {"name": "T", "run_name": "Threads/real_time/threads:2", "run_type": "iteration",)"
                          R"( "real_time": 3.0, "time_unit": "ms", "ratio": 1.5},
 {"name": "MutexPair", "run_name": "MutexPair", "run_type": "iteration", "real_time": 60.0, "time_unit": "ns"}]})";

class GpuCheckTorchTest : public hotpack_test::GpuCheckKit {
 protected:
  GpuCheckTorchTest() {
    fs::create_directories(Path("kit/bench/torch"));
    std::ofstream(Path("kit/bench/torch/train.py")) << "";
    AddHotpack("800", "105000000");
    AddPython("0x1p+1", "0x1p+1");
  }
  void AddHotpack(const std::string& planned, const std::string& held) {
    AddProgram("kit/bin/hotpack", Replaced(Replaced(kHotpack, "PLANNED", planned), "HELD", held));
  }
  void AddPython(const std::string& plain, const std::string& ours, const std::string& within = "65000000") {
    AddProgram("python", Replaced(Replaced(Replaced(kPython, "PLAIN", plain), "OURS", ours), "WITHIN", within));
  }
  // On a driver that says that there is a device, so that losses count.
  Outcome Check(const std::string& only, const std::string& mode = "--quick") {
    return RunProgram({Path("kit/bin/gpu_check"), mode, "--only", only, "--force", "--out", Path("out.json")},
                      {{"LD_LIBRARY_PATH", HOTPACK_FAKE_GPU},
                       {"LD_PRELOAD", ""},
                       {"TMPDIR", folder_.path()},
                       {"HOTPACK_TORCH_PYTHON", Path("python")}});
  }
  json Step(const std::string& name) const {
    const json document = json::parse(ReadFile(Path("out.json")));
    for (const json& step : document.at("steps")) {
      if (step.at("name") == name) return step;
    }
    return {{"findings", json::array()}, {"figures", json::array()}};
  }
  json Named(const json& list, const std::string& name) const {
    for (const json& each : list) {
      if (each.at("name") == name) return each;
    }
    return json::object();
  }
  std::string Result(const std::string& step, const std::string& finding) const {
    return Named(Step(step).at("findings"), finding).value("result", "none");
  }
  double Median(const std::string& step, const std::string& figure) const {
    return Named(Step(step).at("figures"), figure).value("median", -1.0);
  }
};

TEST_F(GpuCheckTorchTest, BudgetsAreKept) {
  const Outcome outcome = Check("budget");
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  for (const char* way : {"gpt2_small/60", "gpt2_small/50", "resnet50/60", "resnet50/50"}) {
    for (const char* finding : {"losses", "budget", "within"}) {
      EXPECT_EQ(Result(way, finding), "pass") << way << " " << finding;
    }
    EXPECT_EQ(Median(way, "reserved"), 65e6);
    EXPECT_EQ(Median(way, "step time over plain"), 1);
    EXPECT_EQ(Median(way, "step time over plain, predicted"), 1.05);
  }
  EXPECT_EQ(Median("gpt2_small/default", "reserved"), 130e6);
  EXPECT_EQ(Result("gpt2_small/default-again", "losses"), "pass");
}

TEST_F(GpuCheckTorchTest, ABudgetWithoutFiguresFails) {
  for (const char* key : {"moved_bytes", "torch_reserved_peak"}) {
    AddPython("0x1p+1", "0x1p+1");
    AddProgram("python", Replaced(ReadFile(Path("python")), key, "other"));
    const Outcome outcome = Check("budget");
    EXPECT_EQ(outcome.code, 1) << key << outcome.err;
    EXPECT_EQ(Result(key[0] == 'm' ? "resnet50/60" : "resnet50/default", "figures"), "fail") << key;
  }
}

TEST_F(GpuCheckTorchTest, ABudgetThatIsExceededAndOtherLossesFail) {
  AddPython("0x1p+1", "0x1p+1", "65000001");
  EXPECT_EQ(Check("budget").code, 1);
  EXPECT_EQ(Result("resnet50/60", "within"), "pass");
  EXPECT_EQ(Result("resnet50/50", "within"), "fail");
  AddProgram("python", Replaced(ReadFile(Path("python")), "hotpack) peak", "hotpack) loss=0x1p+2; peak"));
  EXPECT_EQ(Check("budget").code, 1);
  EXPECT_EQ(Result("resnet50/60", "losses"), "fail");
}

TEST_F(GpuCheckTorchTest, AGoodPyTorchPasses) {
  const Outcome outcome = Check("pytorch");
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_EQ(Result("python", "pytorch"), "pass");
  EXPECT_EQ(Result("resnet50/default-again", "losses"), "pass");
  for (const char* way : {"resnet50/preload", "gpt2_small/hotpack"}) {
    for (const char* finding : {"losses", "planned_share", "serving_memory", "below_default", "below_expandable"}) {
      EXPECT_EQ(Result(way, finding), "pass") << way << " " << finding;
    }
  }
  EXPECT_EQ(Result("seq2seq/preload", "serving_memory"), "none") << "its shapes vary";
  EXPECT_EQ(Result("seq2seq/preload", "losses"), "pass");
  EXPECT_NEAR(Median("resnet50/ratios", "memory, preload / default"), 105.0 / 130, 1e-9);
  EXPECT_NEAR(Median("resnet50/ratios", "memory, hotpack / expandable"), 105.0 / 110, 1e-9);
  EXPECT_EQ(Median("resnet50/ratios", "step time, preload / default"), 1);
  EXPECT_EQ(Median("resnet50/default", "step"), 2.5);
  EXPECT_EQ(ReadFile(Path("out.json")).find(folder_.path()), std::string::npos) << "a path of this machine";
  EXPECT_EQ(Step("resnet50/default").at("command").at(0), "PYTHON");
}

TEST_F(GpuCheckTorchTest, OtherLossesFail) {
  AddPython("0x1p+1", "0x1.00001p+1");
  EXPECT_EQ(Check("pytorch").code, 1);
  EXPECT_EQ(Result("resnet50/preload", "losses"), "fail");
  EXPECT_EQ(Result("resnet50/hotpack", "losses"), "pass");
  AddPython("$(date +%N)", "1");  // no two plain runs agree
  EXPECT_EQ(Check("pytorch").code, 0);
  EXPECT_EQ(Result("resnet50/default-again", "losses"), "skip");
  EXPECT_EQ(Result("resnet50/preload", "losses"), "none");
}

TEST_F(GpuCheckTorchTest, TooMuchMemoryAndTooFewPlannedRequestsFail) {
  AddHotpack("791", "117000000");  // 98.9 %; above 1.02 live peaks and 4 MiB, and the same of expandable segments
  EXPECT_EQ(Check("pytorch").code, 1);
  EXPECT_EQ(Result("resnet50/preload", "planned_share"), "fail");
  EXPECT_EQ(Result("resnet50/preload", "serving_memory"), "fail");
  EXPECT_EQ(Result("resnet50/preload", "below_default"), "pass");
  EXPECT_EQ(Result("resnet50/preload", "below_expandable"), "fail");
  EXPECT_EQ(Result("seq2seq/preload", "below_expandable"), "none");
  // As much as expandable segments, or a little more before there is a plan, is no failure.
  AddHotpack("800", "112000000");
  Check("pytorch");
  EXPECT_EQ(Result("resnet50/preload", "below_expandable"), "pass");
  AddHotpack("791", "117000000");
  // Tiny models are no measure of memory.
  EXPECT_EQ(Check("pytorch", "--tiny").code, 0);
  EXPECT_EQ(Result("resnet50/preload", "serving_memory"), "none");
}

TEST_F(GpuCheckTorchTest, WithoutPyTorchItIsLeftOut) {
  AddProgram("python", "#!/bin/sh\nexit 1\n");
  EXPECT_EQ(Check("pytorch").code, 0);
  EXPECT_EQ(Result("all", "run"), "skip");
  AddProgram("python", "#!/bin/sh\nprintf '2.11.0\\nNone\\nresnet50\\n'\n");
  EXPECT_EQ(Check("pytorch").code, 0);
  EXPECT_THAT(Named(Step("all").at("findings"), "run").at("seen").get<std::string>(), HasSubstr("built without CUDA"));
  fs::remove_all(Path("kit/bench"));
  EXPECT_EQ(Check("pytorch").code, 0);
  EXPECT_THAT(Named(Step("all").at("findings"), "run").at("seen").get<std::string>(), HasSubstr("bench/torch"));
}

TEST_F(GpuCheckTorchTest, ARunThatFailsFailsAlone) {
  AddProgram("python",
             Replaced(Replaced(kPython, "PLAIN", "1"), "OURS", "1") + "[ $allocator != expandable ] || exit 3\n");
  EXPECT_EQ(Check("pytorch").code, 1);
  EXPECT_EQ(Result("resnet50/expandable", "ended"), "fail");
  EXPECT_EQ(Result("resnet50/preload", "below_default"), "pass");
  EXPECT_EQ(Result("resnet50/preload", "below_expandable"), "none");
}

TEST_F(GpuCheckTorchTest, BenchmarksBecomeFigures) {
  AddProgram("kit/bin/serving_bench", Replaced(Replaced(kBenchmark, "DOCUMENT", kTimes), "STATUS", "0"));
  const Outcome outcome = Check("benchmarks");
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_EQ(Result("packer_bench", "run"), "skip") << "it is not here";
  EXPECT_EQ(Median("serving_bench", "OnScriptPair"), 30) << "of two repetitions; a mean of them is none";
  EXPECT_EQ(Named(Step("serving_bench").at("figures"), "OnScriptPair").at("samples"), 2);
  EXPECT_EQ(Median("serving_bench", "Threads/threads:2"), 3e6);
  EXPECT_EQ(Median("serving_bench", "Threads/threads:2, ratio"), 1.5);
  EXPECT_EQ(Median("serving_bench", "MutexPair over OnScriptPair"), 2);
}

TEST_F(GpuCheckTorchTest, ABenchmarkWithAnErrorFails) {
  const std::string wrong = R"({"benchmarks": [{"run_name": "A", "run_type": "iteration", "error_occurred": true,)"
                            R"( "error_message": "off script"}]})";
  AddProgram("kit/bin/serving_bench", Replaced(Replaced(kBenchmark, "DOCUMENT", wrong), "STATUS", "1"));
  const Outcome outcome = Check("benchmarks");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(Named(Step("serving_bench").at("findings"), "A").value("seen", ""), "off script");
  AddProgram("kit/bin/serving_bench", Replaced(Replaced(kBenchmark, "DOCUMENT", "no JSON"), "STATUS", "0"));
  EXPECT_EQ(Check("benchmarks").code, 1);
  EXPECT_EQ(Result("serving_bench", "benchmarks"), "fail");
  // The loader's status: the libraries are missing, and nothing is wrong with hotpack.
  AddProgram("kit/bin/serving_bench", "#!/bin/sh\nexit 127\n");
  EXPECT_EQ(Check("benchmarks").code, 0);
  EXPECT_EQ(Result("serving_bench", "run"), "skip");
}

TEST(QuickTest, AGroupLeavesTheOthersTheirShare) {
  const TemporaryDirectory scratch;
  hotpack::check::Options options;
  options.mode = hotpack::check::Mode::kQuick;
  hotpack::check::Session session(options, {"/nowhere"}, scratch.path());
  hotpack::check::Job job;
  job.name = "a";
  job.command = {"true"};
  session.BeginGroup(0, 0);
  EXPECT_LE(session.SecondsLeft(), 450) << "under eight minutes";
  ASSERT_NE(session.Run("first", job), nullptr);
  session.BeginGroup(0, 450);  // the others' are all
  EXPECT_EQ(session.Run("second", job), nullptr);
  EXPECT_EQ(session.steps().back().findings.at(0).seen, "the time of this part or of --quick was over");
  session.BeginGroup(20, 0);
  EXPECT_LE(session.SecondsLeft(), 20) << "a part's own limit";
  session.BeginGroup(1.2, 0);
  job.name = "long";
  job.command = {"sleep", "30"};
  EXPECT_EQ(session.Run("third", job), nullptr) << "stopped at the limit of its group, it is no measure";
  EXPECT_EQ(session.steps().back().name, "long");
  EXPECT_EQ(session.steps().back().findings.at(0).result, hotpack::check::Result::kSkip);
  session.UseSimulatedDevice(true);
  session.BeginGroup(0, 0);
  EXPECT_LE(session.SecondsLeft(), 240) << "under four minutes where nothing is measured";
}

}  // namespace
