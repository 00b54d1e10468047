// Recorded jobs, played by `hotpack replay` through the hooks, with a driver call failing: the first, the middle and
// the last call of each call site (entry point and the library it is called from), and calls drawn from all. The player
// ends well, or with one line and exit code 1 or 2; never by a signal, a hang, or a report of the checker.
#include <gtest/gtest.h>

#include <algorithm>
#include <cinttypes>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>

#include "tests/property/random.h"
#include "tests/support/subprocess.h"

namespace {

using hotpack_test::Outcome;

uint64_t Number(const char* name, uint64_t otherwise) {
  const char* text = getenv(name);
  return text != nullptr && *text != '\0' ? strtoull(text, nullptr, 10) : otherwise;
}

struct Job {
  const char* name;
  const char* file;  // in tests/data; that of `shared` in the folder of shared traces, if there is one
  const char* shared;
  const char* api;  // which calls it makes
};

class TraceFaults : public testing::TestWithParam<Job> {
 protected:
  Outcome Play(std::map<std::string, std::string> more) {
    const std::string library = std::string(HOTPACK_BINARY_DIR) + "/lib/simgpu";
    // The player of the runtime API is watched by the simulated runtime, the one of the driver API by the witness.
    std::map<std::string, std::string> environment = {
        {"HOTPACK", ""},
        {"LD_LIBRARY_PATH", library},
        {"LD_PRELOAD", library + "/libsimgpu_witness.so " + HOTPACK_PRELOAD}};
    environment.merge(more);
    return hotpack_test::RunProgram(
        {HOTPACK_COMMAND, "replay", trace_, "--repeat", "6", "--wait-plan", "--api", GetParam().api}, environment);
  }

  void SetUp() override {
    trace_ = std::string(HOTPACK_SOURCE_DIR) + "/tests/data/" + GetParam().file;
    const char* shared = getenv("HOTPACK_SHARED");
    const std::string recorded = std::string(shared != nullptr ? shared : "") + "/traces/" + GetParam().shared;
    if (shared != nullptr && getenv("HOTPACK_TEST_DRAWN") != nullptr && std::filesystem::exists(recorded))
      trace_ = recorded;
  }

  // Name or NAME@OBJECT -> calls, of a run in which nothing fails.
  std::map<std::string, uint64_t> CallSites() {
    const hotpack_test::TemporaryDirectory directory;
    const std::string path = directory.path() + "/counts";
    const Outcome outcome = Play({{"SIMGPU_COUNT_FILE", path}, {"SIMGPU_COUNT_CALLERS", "1"}});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    std::istringstream counts(hotpack_test::ReadFile(path));
    std::map<std::string, uint64_t> sites;
    std::string name;
    for (uint64_t calls = 0; counts >> name >> calls;) sites[name] = calls;
    return sites;
  }

  void ExpectEndsWell(const std::string& fail) {
    ++runs_;
    const Outcome outcome = Play({{"SIMGPU_FAIL", fail}});
    EXPECT_LE(outcome.code, 2) << "SIMGPU_FAIL=" << fail << ": " << outcome.err;
    EXPECT_EQ(outcome.err.find("REPORT"), std::string::npos) << "SIMGPU_FAIL=" << fail << ": " << outcome.err;
    if (outcome.code == 0) return;
    ++refused_;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1)
        << "SIMGPU_FAIL=" << fail << ": " << outcome.err;
  }

  std::string trace_;
  uint64_t runs_ = 0, refused_ = 0;
};

const Job kJobs[] = {{"CnnMalloc", "cnn-carried.csv", "alexnet-train-b16.csv", "malloc"},
                     {"MlpAsync", "mlp-adam.csv", "squeezenet1_1-train-b8.csv", "async"},
                     {"LstmDriver", "lstm.csv", "gpt-trainadam-b8.csv", "driver"}};
INSTANTIATE_TEST_SUITE_P(All, TraceFaults, testing::ValuesIn(kJobs),
                         [](const auto& param) { return std::string(param.param.name); });

TEST_P(TraceFaults, EndWell) {
  const std::map<std::string, uint64_t> sites = CallSites();
  uint64_t all = 0, places = 0;
  for (const auto& [name, calls] : sites) {
    if (name.find('@') == std::string::npos) {
      all += calls;
      continue;
    }
    ++places;
    for (const uint64_t k : std::set<uint64_t>{1, (calls + 1) / 2, calls})
      ExpectEndsWell(name + ":" + std::to_string(k));
  }
  ASSERT_GT(places, 15u);
  const uint64_t seed = Number("HOTPACK_TEST_SEED", 1), drawn = Number("HOTPACK_TEST_DRAWN", 20);
  property::Random random(seed);
  for (uint64_t i = 0; i < drawn; ++i) ExpectEndsWell("any:" + std::to_string(1 + random.Below(all)));
  printf("%s: %" PRIu64 " calls from %" PRIu64 " places; %" PRIu64 " runs, %" PRIu64
         " of them ended with an error; seed %" PRIu64 "\n",
         trace_.c_str(), all, places, runs_, refused_, seed);
}

}  // namespace
