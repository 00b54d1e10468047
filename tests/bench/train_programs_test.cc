// The training programs on the simulated device under hotpack: they run to their end, all their memory comes from
// hotpack, and the checker reports nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "tests/support/subprocess.h"

namespace {

using hotpack_test::Outcome;
using hotpack_test::TemporaryDirectory;
using Command = std::vector<std::string>;

Command Words(const std::string& text) {
  std::istringstream in(text);
  Command words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

// The programs with options that make them small, as the build lists them.
std::vector<std::string> Programs() {
  std::istringstream in(HOTPACK_TRAIN_PROGRAMS);
  std::vector<std::string> programs;
  for (std::string program; std::getline(in, program, '|');) programs.push_back(program);
  return programs;
}

Outcome Simulate(const std::string& program, const Command& options, const std::string& stats_path) {
  Command command = {HOTPACK_COMMAND, "run", "--simulate", "--json-stats", stats_path, "--force", "--"};
  const Command words = Words(program);
  command.push_back(std::string(HOTPACK_BINARY_DIR "/bin/") + words.front());
  command.insert(command.end(), words.begin() + 1, words.end());
  command.insert(command.end(), options.begin(), options.end());
  return hotpack_test::RunProgram(command, {{"HOTPACK", ""}, {"LD_LIBRARY_PATH", ""}});
}

class TrainPrograms : public testing::TestWithParam<std::tuple<std::string, std::string, std::string>> {};
INSTANTIATE_TEST_SUITE_P(All, TrainPrograms,
                         testing::Combine(testing::ValuesIn(Programs()),
                                          testing::Values("cuda", "cuda-async", "hotpack"), testing::Values("1", "2")),
                         [](const auto& param) {
                           std::string name = Words(std::get<0>(param.param)).front() + "_" + std::get<1>(param.param) +
                                              "_" + std::get<2>(param.param);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST_P(TrainPrograms, AreServedWithoutAReport) {
  const auto& [program, allocator, streams] = GetParam();
  const TemporaryDirectory directory;
  const std::string stats_path = directory.path() + "/json", losses = directory.path() + "/losses";
  const Outcome outcome =
      Simulate(program,
               {"--steps", "60", "--accumulate", "2", "--epochs", "3", "--last-rows", "3", "--evaluations", "2",
                "--allocator", allocator, "--streams", streams, "--losses", losses},
               stats_path);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, testing::HasSubstr("on a simulated device: no values"));
  const auto stats = nlohmann::json::parse(hotpack_test::ReadFile(stats_path));
  EXPECT_EQ(stats["checker_reports"], 0) << outcome.err;
  EXPECT_EQ(stats["passed_through"], 0);
  EXPECT_GT(stats["requests"], 180 * 2);
  const std::string lines = hotpack_test::ReadFile(losses);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 180);
}

// As they are: static shapes are served by script, evaluations and a shorter last batch included; varying ones stay
// near their live peak. Plans take time, and a simulated iteration takes none, so the programs run long enough for
// both.
class TrainDefaults : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(All, TrainDefaults, testing::ValuesIn(Programs()),
                         [](const auto& param) { return Words(param.param).front(); });

TEST_P(TrainDefaults, ShareAndMemory) {
  constexpr int64_t kMiB = 1 << 20;
  const std::string name = Words(GetParam()).front();
  const bool varies = name.find("seq2seq") != std::string::npos;
  const bool short_run = name.find("mlp") != std::string::npos;
  const TemporaryDirectory directory;
  const std::string stats_path = directory.path() + "/json";
  const Outcome outcome = Simulate(name, short_run ? Command{"--steps", "300"} : Command{}, stats_path);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto stats = nlohmann::json::parse(hotpack_test::ReadFile(stats_path));
  EXPECT_EQ(stats["checker_reports"], 0) << outcome.err;
  const int64_t live = stats["live_peak"], reserved = stats["reserved_peak"];
  EXPECT_LE(reserved * 100, live * 110 + 4 * kMiB * 100 + (varies ? 0 : live)) << stats;
  if (varies) return;
  const int64_t requests = stats["requests_steady"], planned = stats["planned_steady"];
  EXPECT_GT(requests, 0) << stats;
  EXPECT_GE(planned * 100, requests * 99) << stats;
}

class TrainCommandLine : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(All, TrainCommandLine, testing::ValuesIn(Programs()),
                         [](const auto& param) { return Words(param.param).front(); });

TEST_P(TrainCommandLine, BadInputIsOneLineAndTwo) {
  const std::string name = Words(GetParam()).front();
  const TemporaryDirectory directory;
  for (const char* bad :
       {"--streams 3", "--allocator malloc", "--steps 0", "--batch x", "--optimizer rmsprop", "--rate -1",
        "--accumulate 0", "--last-rows -1", "--batch 16 --last-rows 17", "--nothing", "--losses /dev/null/losses"}) {
    const Outcome outcome = Simulate(name, Words(bad), directory.path() + "/json");
    EXPECT_EQ(outcome.code, 2) << bad;
    const std::string text = outcome.err.substr(0, outcome.err.find("hotpack: "));
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << bad << ": " << text;
    EXPECT_THAT(text, testing::StartsWith("train_"));
  }
}

// A program's default of --last-rows is for its default batch; these are smaller.
TEST_P(TrainCommandLine, NoBatchIsLargerThanTheBatch) {
  const TemporaryDirectory directory;
  const auto live_peak = [&](const Command& more) -> uint64_t {
    const std::string stats_path = directory.path() + "/json";
    Command options = {"--steps", "3", "--epochs", "1", "--evaluations", "0"};
    options.insert(options.end(), more.begin(), more.end());
    const Outcome outcome = Simulate(GetParam(), options, stats_path);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return nlohmann::json::parse(hotpack_test::ReadFile(stats_path)).at("live_peak");
  };
  const uint64_t alike = live_peak({"--last-rows", "0"});
  EXPECT_GT(alike, 0u);
  EXPECT_EQ(live_peak({}), alike);
}

TEST_P(TrainCommandLine, TheCheckOfTheGradientsSaysThatNothingIsComputed) {
  const TemporaryDirectory directory;
  const Outcome outcome = Simulate(GetParam(), {"--check-gradients"}, directory.path() + "/json");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, testing::HasSubstr("gradients not checked"));
}

}  // namespace
