// gpu_check's results for recordings with kernel times, good ones and bad ones.
#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "profiler/trace_record.h"
#include "profiler/trace_writer.h"
#include "tests/support/subprocess.h"
#include "tests/tools/gpu_check_kit.h"

namespace {

namespace fs = std::filesystem;
using hotpack_test::Outcome;
using hotpack_test::ReadFile;
using hotpack_test::Replaced;
using nlohmann::json;

// `hotpack run ... --trace FILE ... -- COMMAND`, with a recording that is there already.
constexpr char kHotpack[] = R"(#!/bin/sh
while [ "$1" != -- ]; do
  if [ "$1" = --trace ]; then cp "RECORDING" "$2"; fi
  if [ "$1" = --json-stats ]; then echo '{"requests": 1}' > "$2"; fi
  if [ "$1" = --cupti ]; then echo "$2" >> "ASKED"; fi
  shift
done
shift
exec "$@"
)";

constexpr char kProbe[] = R"(#!/bin/sh
echo '{"program": "gpu_probe", "findings": [)"
                          R"({"name": "cupti.free", "result": "RESULT", "expected": "E", "seen": "S"}], "figures": []}'
)";

struct Recorded {
  int launches = 200;
  int unnamed = 0;
  int untimed = 0;
  int early = 0;  // begin long before they were launched
};

class GpuCheckCollectorsTest : public hotpack_test::GpuCheckKit {
 protected:
  GpuCheckCollectorsTest() {
    AddProgram("kit/lib/libhotpack_cupti.so.0", "");
    AddProgram("kit/bin/hotpack", Replaced(Replaced(kHotpack, "RECORDING", Path("recording")), "ASKED", Path("asked")));
    AddProgram("kit/bin/gpu_probe", Replaced(kProbe, "RESULT", "pass"));
    AddProgram("kit/bin/train_mlp", "#!/bin/sh\nexit 0\n");
  }
  void Record(const Recorded& recorded) {
    hotpack::TraceStatus status;
    const auto writer = hotpack::TraceWriter::Create(Path("recording").c_str(), 1 << 20, &status);
    ASSERT_NE(writer, nullptr);
    const hotpack::NameOrdinal name = writer->AppendName("kernel");
    for (int i = 0; i < recorded.launches; ++i) {
      const uint64_t now = 10'000'000 + static_cast<uint64_t>(i) * 1000;
      hotpack::Event event;
      event.id = static_cast<uint64_t>(i);
      event.bytes = 512;
      event.time_ns = now;
      ASSERT_TRUE(writer->Append(event));
      hotpack::Launch launch;
      launch.time_ns = now + 100;
      launch.name = i < recorded.unnamed ? hotpack::kNoName : name;
      ASSERT_TRUE(writer->Append(launch, nullptr));
      if (i < recorded.untimed) continue;
      hotpack::LaunchWork work;
      work.launch = static_cast<uint64_t>(i);
      work.start_ns = i < recorded.early ? 5'000'000 : now + 200;
      work.end_ns = work.start_ns + 300;
      ASSERT_TRUE(writer->Append(work));
    }
  }
  Outcome Check() {
    return hotpack_test::RunProgram(
        {Path("kit/bin/gpu_check"), "--tiny", "--only", "collectors", "--out", Path("out.json"), "--force"},
        {{"LD_LIBRARY_PATH", HOTPACK_FAKE_GPU}, {"LD_PRELOAD", ""}, {"TMPDIR", folder_.path()}});
  }
  // Names of the findings that failed, of all steps.
  std::vector<std::string> Failed() const {
    std::vector<std::string> failed;
    const json document = json::parse(ReadFile(Path("out.json")));
    for (const json& step : document.at("steps")) {
      for (const json& finding : step.at("findings")) {
        if (finding.at("result") == "fail") {
          failed.push_back(step.at("name").get<std::string>() + ": " + finding.at("name").get<std::string>());
        }
      }
    }
    return failed;
  }
};

TEST_F(GpuCheckCollectorsTest, AGoodRecordingPasses) {
  Record({});
  const Outcome outcome = Check();
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_EQ(ReadFile(Path("asked")), "3\nall\n") << "a few iterations for the probe, all for the training program";
  const json document = json::parse(ReadFile(Path("out.json")));
  size_t passed = 0;
  std::vector<std::string> figures;
  for (const json& step : document.at("steps")) {
    for (const json& finding : step.at("findings")) {
      passed += finding.at("name") == "names" || finding.at("name") == "times" || finding.at("name") == "order" ? 1 : 0;
    }
    if (step.at("name") != "train_mlp/cost") continue;
    for (const json& figure : step.at("figures")) figures.push_back(figure.at("name"));
  }
  EXPECT_EQ(passed, 6u) << "three of each recording";
  EXPECT_THAT(figures, testing::ElementsAre("recorded", "with_kernel_times"));
}

TEST_F(GpuCheckCollectorsTest, BadRecordingsFail) {
  const auto both = [](const std::string& finding) {
    return testing::ElementsAre("gpu_probe/cupti/detach: " + finding, "train_mlp/cupti: " + finding);
  };
  Record({.unnamed = 1});
  EXPECT_EQ(Check().code, 1);
  EXPECT_THAT(Failed(), both("names"));
  Record({.untimed = 2});
  EXPECT_EQ(Check().code, 0) << "two of two hundred are one in a hundred";
  Record({.untimed = 3});
  EXPECT_EQ(Check().code, 1);
  EXPECT_THAT(Failed(), both("times"));
  Record({.early = 1});
  EXPECT_EQ(Check().code, 1);
  EXPECT_THAT(Failed(), both("order"));
  Record({.launches = 0});
  EXPECT_EQ(Check().code, 1);
  EXPECT_THAT(Failed(), both("launches"));
  std::ofstream(Path("recording")) << "none";
  EXPECT_EQ(Check().code, 1);
  EXPECT_THAT(Failed(), both("recording"));
}

TEST_F(GpuCheckCollectorsTest, CuptiThatIsNeverFreeAgainFails) {
  Record({});
  AddProgram("kit/bin/gpu_probe", Replaced(kProbe, "RESULT", "fail") + "exit 1\n");
  EXPECT_EQ(Check().code, 1);
  EXPECT_THAT(Failed(), testing::ElementsAre("gpu_probe/cupti/detach: cupti.free"));
}

TEST_F(GpuCheckCollectorsTest, WithoutTheLibraryItIsSkipped) {
  fs::remove(Path("kit/lib/libhotpack_cupti.so.0"));
  const Outcome outcome = Check();
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(ReadFile(Path("out.json")), testing::HasSubstr("CUPTI's headers were missing when this was built"));
}

}  // namespace
