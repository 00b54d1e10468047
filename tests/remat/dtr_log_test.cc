#include "remat/files/dtr_log.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "remat/core/simulator.h"
#include "remat/core/verifier.h"

namespace hotpack::remat {
namespace {

constexpr const char* kLog = R"({"ANNOTATION":"START","INSTRUCTION":"ANNOTATE"}
{"INSTRUCTION":"CONSTANT","NAME":"w"}
{"INSTRUCTION":"MEMORY","MEMORY":"1000","NAME":"w"}
{"INSTRUCTION":"CONSTANT","NAME":"x"}
{"INSTRUCTION":"MEMORY","MEMORY":"200","NAME":"x"}
{"ARGS":["x","w"],"INSTRUCTION":"CALL","NAME":"conv","RESULT":["y"],"TIME":"50"}
{"INSTRUCTION":"MEMORY","MEMORY":"300","NAME":"y"}
{"ALIAS":"-1","INSTRUCTION":"ALIAS","NAME":"y"}
{"ARGS":["y"],"INSTRUCTION":"CALL","NAME":"view","RESULT":["v"],"TIME":"1"}
{"INSTRUCTION":"MEMORY","MEMORY":"300","NAME":"v"}
{"ALIAS":"0","INSTRUCTION":"ALIAS","NAME":"v"}
{"INSTRUCTION":"RELEASE","NAME":"y"}
{"ARGS":["v","v"],"INSTRUCTION":"MUTATE","MUTATE":[0],"NAME":"add_","TIME":"7"}
{"DST":"w2","INSTRUCTION":"COPY","SRC":"w"}
{"INSTRUCTION":"RELEASE","NAME":"w"}
{"INSTRUCTION":"CONSTANT","NAME":"one"}
{"INSTRUCTION":"MEMORY","MEMORY":"8","NAME":"one"}
{"ARGS":["x","v","one"],"INSTRUCTION":"CALL","NAME":"native_dropout_backward","RESULT":["g","m"],"TIME":"20"}
{"INSTRUCTION":"MEMORY","MEMORY":"40","NAME":"g"}
{"ALIAS":"-1","INSTRUCTION":"ALIAS","NAME":"g"}
{"INSTRUCTION":"MEMORY","MEMORY":"200","NAME":"m"}
{"ALIAS":"0","INSTRUCTION":"ALIAS","NAME":"m"}
{"INSTRUCTION":"RELEASE","NAME":"v"}
{"INSTRUCTION":"RELEASE","NAME":"x"}
{"INSTRUCTION":"RELEASE","NAME":"m"}
{"INSTRUCTION":"RELEASE","NAME":"one"}
)";

TEST(DtrLogTest, WhatALogSays) {
  const absl::StatusOr<Graph> read = ParseDtrLog(kLog, "log");
  ASSERT_TRUE(read.ok()) << read.status();
  const Graph& graph = *read;
  ASSERT_EQ(graph.storages.size(), 5u);  // w x y one g
  EXPECT_TRUE(graph.storages[0].given && graph.storages[0].kept);
  EXPECT_EQ(graph.storages[0].kind, StorageKind::kWeight);
  EXPECT_TRUE(graph.storages[1].given && !graph.storages[1].kept);
  EXPECT_FALSE(graph.storages[2].given || graph.storages[2].kept);
  EXPECT_TRUE(!graph.storages[4].given && graph.storages[4].kept);
  ASSERT_EQ(graph.operators.size(), 5u);
  EXPECT_EQ(graph.operators[0].reads, (std::vector<StorageId>{1, 0}));
  EXPECT_EQ(graph.operators[0].writes, (std::vector<StorageId>{2}));
  EXPECT_EQ(graph.operators[0].cost, 50);
  EXPECT_EQ(graph.operators[1].reads, (std::vector<StorageId>{2}));  // a view makes nothing
  EXPECT_TRUE(graph.operators[1].writes.empty());
  EXPECT_EQ(graph.operators[2].updates, (std::vector<StorageId>{2}));
  EXPECT_TRUE(graph.operators[2].reads.empty());
  EXPECT_TRUE(graph.operators[3].once);  // a constant that came in between
  EXPECT_TRUE(graph.operators[4].random);
  EXPECT_EQ(graph.operators[4].phase, Phase::kBackward);
  EXPECT_EQ(graph.operators[3].phase, Phase::kForward);
  EXPECT_EQ(graph.released_after, (std::vector<OperatorId>{kNever, 4, 4, 4, kNever}));
}

TEST(DtrLogTest, FaultsAreOneLine) {
  const struct {
    const char* text;
    const char* error;
  } cases[] = {
      {"", "log:1: no operators"},
      {"[1]\n", "log:1: no JSON object"},
      {"{\"INSTRUCTION\":\"CALL\"\n", "log:1: no JSON object"},
      {"\n{\"INSTRUCTION\":\"JUMP\"}\n", "log:2: 'JUMP' is no instruction"},
      {"{\"INSTRUCTION\":\"RELEASE\",\"NAME\":\"a\"}\n", "log:1: there is no 'a'"},
      {"{\"INSTRUCTION\":\"RELEASE\"}\n", "log:1: no NAME"},
      {"{\"INSTRUCTION\":\"CALL\",\"NAME\":\"f\",\"ARGS\":[],\"TIME\":\"-3\"}\n", "log:1: TIME is -3"},
      {"{\"INSTRUCTION\":\"CALL\",\"NAME\":\"f\",\"ARGS\":[],\"TIME\":\"3x\"}\n", "log:1: TIME '3x' is no number"},
      {"{\"INSTRUCTION\":\"CALL\",\"NAME\":\"f\",\"ARGS\":[1],\"TIME\":3}\n", "log:1: an argument is no text"},
      {"{\"INSTRUCTION\":\"MUTATE\",\"NAME\":\"f\",\"ARGS\":[],\"MUTATE\":[0],\"TIME\":3}\n",
       "log:1: MUTATE names an argument that is none"},
      {"{\"INSTRUCTION\":\"ALIAS\",\"NAME\":\"f\",\"ALIAS\":\"-1\"}\n", "log:1: no MEMORY of 'f' before it"},
      {"{\"INSTRUCTION\":\"MEMORY\",\"NAME\":\"f\",\"MEMORY\":\"1\"}\n{\"INSTRUCTION\":\"ALIAS\",\"NAME\":\"f\","
       "\"ALIAS\":\"0\"}\n",
       "log:2: the operator has no argument 0"},
      {"{\"INSTRUCTION\":\"MEMORY\",\"NAME\":\"f\",\"MEMORY\":\"1\"}\n{\"INSTRUCTION\":\"ALIAS\",\"NAME\":\"f\","
       "\"ALIAS\":\"-1\"}\n",
       "log:2: no operator before it"},
  };
  for (const auto& each : cases) EXPECT_EQ(ParseDtrLog(each.text, "log").status().message(), each.error);
}

// The prototype's own measurements (docs/research/planner.md), in 10^6 bytes, within 0.5 %.
TEST(DtrLogTest, RecordedPeaks) {
  const char* shared = std::getenv("HOTPACK_SHARED");
  const std::filesystem::path folder =
      std::filesystem::path(shared != nullptr ? shared : HOTPACK_SOURCE_DIR "/../shared") / "dtr";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no logs: HOTPACK_SHARED names their folder";
  for (const auto& [file, megabytes] : {std::pair("transformer-10.log", 9868.0), std::pair("unet-6.log", 8416.0),
                                        std::pair("lstm-128.log", 0.0), std::pair("resnet32-56.log", 0.0)}) {
    std::ostringstream text;
    text << std::ifstream(folder / file).rdbuf();
    const absl::StatusOr<Graph> graph = ParseDtrLog(text.str(), file);
    ASSERT_TRUE(graph.ok()) << graph.status();
    const Schedule baseline = Baseline(*graph, Release::kAsTheProgram);
    const absl::StatusOr<Outcome> outcome = Simulate(*graph, baseline);
    ASSERT_TRUE(outcome.ok()) << outcome.status();
    EXPECT_EQ(Verify(*graph, baseline), "");
    if (megabytes > 0) {
      EXPECT_NEAR(static_cast<double>(outcome->live_peak) / 1e6, megabytes, 0.005 * megabytes) << file;
    }
    const absl::StatusOr<Outcome> eager = Simulate(*graph, Baseline(*graph));
    ASSERT_TRUE(eager.ok()) << eager.status();
    EXPECT_LE(eager->live_peak, outcome->live_peak);
    std::printf(
        "%s: %zu operators, %zu storages, peak %.0f MB as recorded, %.0f MB released after the last use, %.1f ms\n",
        file, graph->operators.size(), graph->storages.size(), static_cast<double>(outcome->live_peak) / 1e6,
        static_cast<double>(eager->live_peak) / 1e6, static_cast<double>(outcome->time) / 1e6);
  }
}

// A log of the prototype has the forward pass's pooling under the name of the gradient's.
TEST(DtrLogTest, TheBackwardPassIsBehindAllConvolutions) {
  const std::string head = R"({"INSTRUCTION":"CONSTANT","NAME":"x"}
{"INSTRUCTION":"MEMORY","MEMORY":"8","NAME":"x"}
)";
  std::string text = head, before = "x";
  const char* names[] = {"max_pool2d_backward",
                         "cudnn_convolution",
                         "upsample_bilinear2d",
                         "mse_loss_backward",
                         "upsample_bilinear2d_backward",
                         "cudnn_convolution_backward",
                         "mm"};
  for (const char* name : names) {
    const std::string made = before + "y";
    text += R"({"ARGS":[")" + before + R"("],"INSTRUCTION":"CALL","NAME":")" + name + R"(","RESULT":[")" + made +
            R"("],"TIME":"5"}
{"INSTRUCTION":"MEMORY","MEMORY":"8","NAME":")" +
            made + R"("}
{"ALIAS":"-1","INSTRUCTION":"ALIAS","NAME":")" +
            made + R"("}
)";
    before = made;
  }
  const absl::StatusOr<Graph> graph = ParseDtrLog(text, "small.log");
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_EQ(graph->operators.size(), 7u);
  for (size_t i = 0; i < 7; ++i)
    EXPECT_EQ(graph->operators[i].phase, i < 3 ? Phase::kForward : Phase::kBackward) << names[i];
  EXPECT_TRUE(graph->operators[1].heavy);
  EXPECT_FALSE(graph->operators[2].heavy);  // "linear" is in it
  EXPECT_TRUE(graph->operators[6].heavy);
}

}  // namespace
}  // namespace hotpack::remat
