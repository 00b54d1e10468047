// request_bench plays the recording repeatedly, and does not hide what it did not measure.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "bench/request_sequence.h"
#include "nlohmann/json.hpp"
#include "profiler/trace_file.h"
#include "tests/support/subprocess.h"

namespace hotpack::bench {
namespace {

using ::testing::HasSubstr;

// "+1:512" asks for block 1, "-1" releases it, "|" is a mark.
Trace MakeTrace(const std::vector<std::string>& words) {
  Trace trace;
  for (const std::string& word : words) {
    Event event;
    if (word == "|") {
      event.kind = EventKind::kMark;
    } else {
      event.kind = word[0] == '+' ? EventKind::kAllocate : EventKind::kRelease;
      event.id = std::stoull(word.substr(1));
      const size_t colon = word.find(':');
      if (colon != std::string::npos) event.bytes = std::stoull(word.substr(colon + 1));
    }
    trace.events.push_back(event);
  }
  return trace;
}

// Plays many iterations. No slot is allocated twice, and from the second turn of the forms on no released slot is
// empty. Returns the bytes allocated in an iteration.
uint64_t PlayAll(const RequestSequence& sequence) {
  std::vector<bool> held(sequence.slots, false);
  uint64_t bytes = 0;
  for (size_t i = 0; i < 5 * sequence.forms.size(); ++i) {
    bytes = 0;
    uint64_t requests = 0, releases = 0;
    for (const RequestCall& call : sequence.forms[i % sequence.forms.size()]) {
      if (call.bytes != 0) {
        EXPECT_FALSE(held[call.slot]) << "iteration " << i << ", slot " << call.slot;
        ++requests;
      } else {
        EXPECT_TRUE(held[call.slot] || i < sequence.forms.size()) << "iteration " << i << ", slot " << call.slot;
        ++releases;
      }
      held[call.slot] = call.bytes != 0;
      bytes += call.bytes;
    }
    EXPECT_EQ(requests, sequence.pairs);
    EXPECT_EQ(releases, sequence.pairs);
  }
  return bytes;
}

TEST(RequestSequenceTest, AStepWithoutCarriedBlocksHasOneForm) {
  const auto sequence =
      SequenceOf(MakeTrace({"|", "+1:100", "+2:600", "-1", "-2", "|", "+3:100", "+4:600", "-3", "-4", "|"}));
  ASSERT_TRUE(sequence.ok());
  EXPECT_EQ(sequence->forms.size(), 1u);
  EXPECT_EQ(sequence->pairs, 2u);
  EXPECT_EQ(sequence->held_to_end, 0u);
  EXPECT_EQ(sequence->live_peak, 512u + 1024u);
  EXPECT_EQ(PlayAll(*sequence), 700u);
}

TEST(RequestSequenceTest, ACarriedBlockLivesInTwoForms) {
  // Each step's first block is released in the next step, after its own successor was asked for.
  const auto sequence = SequenceOf(MakeTrace({"|", "+1:512", "+2:1024", "-2", "|", "+3:512", "-1", "+4:1024", "-4", "|",
                                              "+5:512", "-3", "+6:1024", "-6", "|"}));
  ASSERT_TRUE(sequence.ok());
  EXPECT_EQ(sequence->forms.size(), 2u);
  EXPECT_EQ(sequence->held_to_end, 0u);
  EXPECT_EQ(sequence->live_peak, 1536u);
  EXPECT_EQ(PlayAll(*sequence), 1536u);
}

TEST(RequestSequenceTest, WithoutASteadyStepTheWholeIsPlayed) {
  const auto sequence = SequenceOf(MakeTrace({"+1:1", "|", "+2:2", "-1", "|", "+3:4"}));
  ASSERT_TRUE(sequence.ok());
  EXPECT_EQ(sequence->pairs, 3u);
  EXPECT_EQ(sequence->held_to_end, 2u);
  EXPECT_EQ(PlayAll(*sequence), 7u);
  EXPECT_FALSE(SequenceOf(MakeTrace({"|", "|"})).ok());
}

TEST(RequestSequenceTest, RecordingsAndTheBuiltInStepCanBePlayed) {
  for (const char* name : {"cnn-carried.csv", "lstm.csv", "mlp-adam.csv", "mlp-adam.trace"}) {
    const auto file = LoadTrace(std::string(HOTPACK_SOURCE_DIR "/tests/data/") + name);
    ASSERT_TRUE(file.ok()) << name;
    const auto sequence = SequenceOf(file->trace);
    ASSERT_TRUE(sequence.ok()) << name;
    EXPECT_GT(PlayAll(*sequence), 0u) << name;
  }
  PlayAll(BuiltInSequence());
}

#ifdef HOTPACK_REQUEST_BENCH
hotpack_test::Outcome Bench(std::vector<std::string> arguments, const std::string& hotpack = "",
                            const std::string& preload = "") {
  arguments.insert(arguments.begin(), HOTPACK_REQUEST_BENCH);
  return hotpack_test::RunProgram(
      arguments, {{"LD_LIBRARY_PATH", HOTPACK_SIMGPU_DIR}, {"LD_PRELOAD", preload}, {"HOTPACK", hotpack}});
}

TEST(RequestBenchTest, TellsItsFigures) {
  for (const char* allocator : {"cuda", "cuda-async", "hotpack"}) {
    const auto outcome = Bench({"--allocator", allocator, "--iterations", "20", "--json", "--launches"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const nlohmann::json told = nlohmann::json::parse(outcome.out);
    EXPECT_EQ(told["findings"].size(), allocator == std::string("hotpack") ? 1u : 0u);
    for (const nlohmann::json& finding : told["findings"]) EXPECT_EQ(finding["result"], "pass") << finding.dump();
    EXPECT_EQ(told["figures"][0]["name"], "pair");
    EXPECT_EQ(told["figures"][0]["samples"], 20);
    EXPECT_GT(told["figures"][0]["median"], told["figures"][1]["median"]) << "a request costs more than the empty loop";
  }
}

TEST(RequestBenchTest, FailsWhereHotpackDoesNotAnswer) {
  // HOTPACK=0: the C interface passes its calls through, so the figure would be of something else than its name.
  const auto outcome = Bench({"--allocator", "hotpack", "--iterations", "5", "--warm-up", "1", "--json", "--trace",
                              HOTPACK_SOURCE_DIR "/tests/data/lstm.csv"},
                             "0");
  EXPECT_EQ(outcome.code, 1) << outcome.out;
}

TEST(RequestBenchTest, AWarmUpThatNeverBecomesSteadyIsSaid) {
  const auto outcome = Bench({"--allocator", "cuda", "--iterations", "5", "--warm-up", "2"}, "", HOTPACK_NEVER_STEADY);
  EXPECT_EQ(outcome.code, 1) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("after 20 iterations of warm-up"));
  EXPECT_THAT(outcome.out, HasSubstr("fail: every timed request is served by script"));
}

TEST(RequestBenchTest, BadInputIsOneLine) {
  const std::vector<std::vector<std::string>> wrong = {
      {"--allocator", "best"}, {"--iterations", "0"}, {"--warm-up", "-1"}, {"--trace", "no-such-file"}, {"extra"}};
  for (const std::vector<std::string>& arguments : wrong) {
    const auto outcome = Bench(arguments);
    EXPECT_EQ(outcome.code, 2) << ::testing::PrintToString(arguments);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, ::testing::MatchesRegex("request_bench: [^\n]+\n"));
  }
}
#endif

}  // namespace
}  // namespace hotpack::bench
