// `hotpack need`: its figures, its questions, and wrong use. Programs are replayed recordings on the simulated device.
#include <fstream>
#include <string>
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
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::json;

Outcome Need(std::vector<std::string> options, std::vector<std::string> command) {
  options.push_back("--");
  options.insert(options.end(), command.begin(), command.end());
  return hotpack_test::RunSubcommand("need", std::move(options));
}

std::vector<std::string> Replay(const std::string& recording) {
  return {HOTPACK_COMMAND, "replay", recording, "--marks", "api", "--no-touch"};
}

Json NeedJson(std::vector<std::string> options, const std::vector<std::string>& command) {
  options.push_back("--json");
  return JsonOf(Need(options, command));
}

Json Compared(const std::string& recording) {
  const Outcome outcome = RunProgram(
      {HOTPACK_COMMAND, "compare", recording, "--peers", "pytorch,pytorch-expandable", "--json"}, {{"LD_PRELOAD", ""}});
  return Json::parse(outcome.out, nullptr, /*allow_exceptions=*/false);
}

TEST(NeedTest, ItsFiguresAreThoseOfTheRecording) {
  const Json need = NeedJson({}, Replay(kCarried)), compared = Compared(kCarried);
  EXPECT_EQ(need["requests"], compared["requests"]);
  EXPECT_EQ(need["live_peak"], compared["live_peak"]);
  for (const Json& row : compared["rows"]) {
    SCOPED_TRACE(row.dump());
    const Json mine = need[row["name"].get<std::string>()];
    EXPECT_EQ(mine["smallest_device"], row["smallest_device"]);
    EXPECT_EQ(mine["held_at_most"], row["reserved_peak"]);
    EXPECT_GE(mine["smallest_device"], need["live_peak"]);
  }
  EXPECT_GT(need["needed_with_context"], need["hotpack"]["smallest_device"]);
  EXPECT_EQ(need["same_requests"], true);
  EXPECT_EQ(need["growth"], 0);
}

TEST(NeedTest, OneScreen) {
  const Outcome outcome = Need({"--gpus"}, Replay(kPerceptron));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out,
              AllOf(HasSubstr("no GPU used"), HasSubstr("\nsmallest device "), HasSubstr("\nlive at most "),
                    HasSubstr("CUDA's context"), HasSubstr("memory does not grow"), HasSubstr("H100 80GB")));
  EXPECT_THAT(outcome.err, HasSubstr("requests ")) << "the program's own output";
  EXPECT_THAT(outcome.out, Not(HasSubstr("ms per step")));
}

// Each step leaves a block of 3 MiB.
TEST(NeedTest, GrowthIsSaid) {
  TemporaryDirectory folder;
  const std::string path = folder.path() + "/leak.csv";
  std::ofstream file(path);
  file << "event,id,bytes\n";
  for (int step = 1; step < 6; ++step) {
    file << "alloc," << 10 * step << ",3145728\nalloc,1,8388608\nfree,1,\nmark," << step << ",\n";
  }
  file.close();
  EXPECT_THAT(Need({}, Replay(path)).out, HasSubstr("memory grows: 3.00 MiB from the last step but one"));
  EXPECT_EQ(NeedJson({}, Replay(path))["growth"], 3 << 20);
}

// Of many steps: what rises again and again, not what the last one happens to leave.
TEST(NeedTest, GrowthOfALongRun) {
  TemporaryDirectory folder;
  const std::string leak = folder.path() + "/leak.csv", sways = folder.path() + "/sways.csv";
  std::ofstream leaking(leak), swaying(sways);
  leaking << "event,id,bytes\n";
  swaying << "event,id,bytes\nalloc,2,1048576\n";
  for (int step = 1; step < 20; ++step) {
    leaking << "alloc," << 10 * step << ",3145728\nalloc,1,8388608\nfree,1,\nmark," << step << ",\n";
    swaying << "free,2,\nalloc,1,8388608\nfree,1,\nalloc,2," << (step % 3 + 1) * 1048576 << "\nmark," << step << ",\n";
  }
  leaking.close();
  swaying << "free,2,\nalloc,1,8388608\nfree,1,\nalloc,2,5242880\nmark,20,\n";
  swaying.close();
  EXPECT_THAT(Need({}, Replay(leak)).out, HasSubstr("memory grows by 3.0 MiB a step, over "));
  const Outcome outcome = Need({}, Replay(sways));
  EXPECT_THAT(outcome.out, HasSubstr("memory does not grow from step to step"));
  EXPECT_GT(NeedJson({}, Replay(sways))["growth"], 1 << 20) << "the last one's";
}

TEST(NeedTest, WhatFits) {
  const Outcome yes = Need({"--fits", "24GB"}, Replay(kPerceptron));
  EXPECT_EQ(yes.code, 0) << yes.err;
  EXPECT_THAT(yes.out, HasSubstr("fits 24GB: yes"));
  const Outcome no = Need({"--fits", "100M"}, Replay(kPerceptron));
  EXPECT_EQ(no.code, 1) << "CUDA's context does not fit";
  EXPECT_THAT(no.out, HasSubstr("fits 100M: no ("));
  EXPECT_THAT(no.out, HasSubstr(" MiB needed, with CUDA's context: "));
}

TEST(NeedTest, OnceForEachValue) {
  const Json need =
      NeedJson({"--vary", "times=1,3"}, {HOTPACK_COMMAND, "replay", kPerceptron, "--whole", "{times}", "--no-touch"});
  ASSERT_EQ(need["cases"].size(), 2u);
  EXPECT_EQ(need["parameter"], "times");
  EXPECT_EQ(need["cases"][0]["value"], "1");
  EXPECT_EQ(need["cases"][1]["requests"], 3 * need["cases"][0]["requests"].get<int>());
}

// A recording of N MiB: memory is affine in N.
TEST(NeedTest, TheLargestValueThatFits) {
  TemporaryDirectory folder;
  const std::string script = folder.path() + "/job.sh";
  std::ofstream(script) << "printf 'event,id,bytes\\nalloc,1,%d\\nfree,1,\\n' $(($1 << 20)) > " << folder.path()
                        << "/job.csv; exec " << HOTPACK_COMMAND << " replay --no-touch " << folder.path() << "/job.csv";
  const auto need = [&](const std::string& size) {
    const Outcome outcome = Need({"--vary", "size=10,20", "--fits", size, "--json"}, {"bash", script, "{size}"});
    EXPECT_LE(outcome.code, 1) << outcome.err;
    return Json::parse(outcome.out, nullptr, false);
  };
  const Json large = need("1G");
  EXPECT_EQ(large["largest"], 1024 - 426) << "with CUDA's context";
  EXPECT_EQ(large["cases"].size(), 3u) << "one more run";
  EXPECT_EQ(need("440M")["largest"], 14);
  EXPECT_EQ(large["largest_at_least"], false);
  EXPECT_EQ(need("427M")["largest"], nullptr) << "a chunk is larger";
  // What needs no more with more: four runs more, and no largest one.
  const Json flat =
      NeedJson({"--vary", "n=1,2", "--fits", "1G"},
               {"bash", "-c", "exec " HOTPACK_COMMAND " replay --no-touch " + std::string(kCarried) + " # {n}"});
  EXPECT_EQ(flat["largest"], 512);
  EXPECT_EQ(flat["largest_at_least"], true);
}

TEST(NeedTest, ItSeesTheDeviceThatItIsGiven) {
  const Outcome outcome = Need({"--memory", "4M"}, Replay(kCarried));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr("ended with code "));
}

// What `run` is given in addition: the smallest device suffices as a device and as a limit, one of 2 MiB less does not.
TEST(NeedTest, MemoryAndLimitOfARun) {
  const uint64_t smallest = NeedJson({}, Replay(kCarried))["hotpack"]["smallest_device"];
  for (const char* option : {"--memory", "--limit"}) {
    const auto run = [&](uint64_t bytes) {
      std::vector<std::string> command = {HOTPACK_COMMAND, "run", "--simulate", option, std::to_string(bytes), "--"};
      const std::vector<std::string> replay = Replay(kCarried);
      command.insert(command.end(), replay.begin(), replay.end());
      return RunProgram(command, {{"LD_PRELOAD", ""}});
    };
    EXPECT_EQ(run(smallest).code, 0) << option;
    const Outcome less = run(smallest - (2 << 20));
    EXPECT_EQ(less.code, 1) << option;
    EXPECT_THAT(less.err, HasSubstr("out of memory")) << option;
    const bool limited = std::string(option) == "--limit";
    EXPECT_EQ(less.err.find("is beyond the limit of ") != std::string::npos, limited) << less.err;
  }
}

void ExpectRefused(const Outcome& outcome, const std::string& word) {
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, AllOf(StartsWith("hotpack need: "), HasSubstr(word)));
  EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << "one line: " << outcome.err;
}

TEST(NeedTest, WrongUseIsOneLine) {
  ExpectRefused(Need({}, {"true"}), "no process asked for device memory");
  ExpectRefused(Need({}, {"false"}), "ended with code 1");
  ExpectRefused(Need({"--fits", "much"}, {"true"}), "'much' is no size");
  ExpectRefused(Need({"--vary", "batch"}, {"true"}), "not NAME=VALUE");
  ExpectRefused(Need({"--vary", "batch=1,,2"}, {"true"}), "a value is empty");
  ExpectRefused(Need({"--vary", "batch=1,2"}, {"true"}), "the command has no {batch}");
  ExpectRefused(Need({"--memory", "1M"}, {"true"}), "at least 2M");
  EXPECT_EQ(Need({}, {"no-such-program"}).code, 127);
}

}  // namespace
