#include "remat/networks/recurrent.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "remat/core/schedule.h"
#include "remat/core/verifier.h"
#include "remat/networks/speech.h"
#include "remat/networks/translation.h"

namespace hotpack::remat {
namespace {

constexpr double kGiB = 1 << 30;

Bytes BytesOf(const Network& network, const std::string& kind) {
  Bytes sum = 0;
  for (const Layer& layer : network.layers) {
    for (TensorId output : layer.outputs)
      sum += layer.kind == kind ? network.tensors[static_cast<size_t>(output)].bytes : 0;
  }
  return sum;
}

void ExpectSound(const Network& network) {
  const absl::StatusOr<Graph> graph = TrainingGraph(network);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(Verify(*graph, Baseline(*graph)), "");
}

// 25 results a cell of batch · hidden elements: two products of four, their sum, its four parts, four gates, and f·c,
// i·g, c, tanh c, h.
TEST(LstmTest, ResultsOfACell) {
  const Network network = *Lstm({.layers = 3, .hidden = 8, .steps = 5, .batch = 2, .inputs = 6, .classes = 7});
  const Bytes cells = 3 * 5 * 25 * (2 * 8 * kElement);
  const Bytes rest = 5 * 2 * 6 * kElement + 5 * 2 * 8 * kElement +
                     2 * (5 * 2 * 7 * kElement);  // inputs parted, results joined, classifier
  EXPECT_EQ(FeatureMapBytes(network), cells + rest);
  // Four gates from inputs and from h in each layer, for all steps; the classifier with its bias.
  EXPECT_EQ(WeightBytes(network), kElement * (4 * 8 * (6 + 8) + 2 * 4 * 8 * (8 + 8) + 7 * 8 + 7));
  EXPECT_EQ(CountOf(network, "fully_connected"), 3 * 5 * 2 + 1);
  ExpectSound(network);
}

// An independent simulation of Chen et al. 2016, section 5.3 (4 x 1024, batch 64): all results and their gradients with
// their own memory take 3.31 GiB with 64 steps. There the softmax works in place.
TEST(LstmTest, AllResultsAndGradients) {
  const Network network = *Lstm({});
  const auto all =
      static_cast<double>(2 * (FeatureMapBytes(network) - BytesOf(network, "softmax") - BytesOf(network, "split")));
  EXPECT_NEAR(all / kGiB, 3.31, 0.005);
}

// c of each step follows from that of the step before: the last result from all that is given.
TEST(LstmTest, StepsFollowEachOther) {
  const Network network = *Lstm({.layers = 1, .hidden = 4, .steps = 6, .batch = 1, .inputs = 3, .classes = 2});
  const Training training = *MakeTraining(network);
  for (const Tensor& tensor : network.tensors) {
    if (tensor.name != "h0" && tensor.name != "c0") continue;
    const auto id = static_cast<size_t>(&tensor - network.tensors.data());
    EXPECT_GE(training.storage_of[id], 0);
  }
  EXPECT_EQ(std::count_if(training.graph.operators.begin(), training.graph.operators.end(),
                          [](const Operator& op) { return op.name.starts_with("update"); }),
            4);  // two products, classifier and bias
}

TEST(TranslationTest, AttentionKeepsAResultOfAllWordsForEachWord) {
  TranslationOptions options = {
      .layers = 3, .hidden = 16, .embedding = 12, .steps = 7, .batch = 2, .source_words = 50, .target_words = 40};
  const TranslationNetwork made = *Translation(options);
  const Network& network = made.network;
  EXPECT_EQ(BytesOf(network, "broadcast_sum"), 7 * (2 * 7 * 16 * kElement));
  EXPECT_EQ(CountOf(network, "batch_product"), 7);
  // 13 layers a cell; a first encoder layer both ways, two more and three of the decoder. The attention: sum of all
  // with the query's product, tanh, score, softmax, context.
  const auto count = [&made](TranslationPart part) {
    return std::count(made.part_of.begin(), made.part_of.end(), part);
  };
  EXPECT_EQ(count(TranslationPart::kRecurrent), 13 * 7 * (2 + 2 + 3));
  EXPECT_EQ(count(TranslationPart::kAttention), 7 * 6);
  ExpectSound(network);
  options.normalise = true;
  const TranslationNetwork normalised = *Translation(options);
  EXPECT_EQ(CountOf(normalised.network, "layer_norm"), 7);
  ExpectSound(normalised.network);
  options.hidden = 15;
  EXPECT_FALSE(Translation(options).ok());
}

TEST(TranslationTest, WeightsDoNotGrowWithTheSentence) {
  const auto weights = [](int64_t steps) {
    return WeightBytes(Translation({.layers = 2,
                                    .hidden = 8,
                                    .embedding = 8,
                                    .steps = steps,
                                    .batch = 1,
                                    .source_words = 9,
                                    .target_words = 9})
                           ->network);
  };
  EXPECT_EQ(weights(3), weights(20));
}

TEST(SpeechTest, StepsAndCells) {
  const SpeechOptions options = {.layers = 2, .hidden = 6, .frames = 60, .bands = 161, .batch = 2, .classes = 5};
  const Network network = *Speech(options);
  // (60 - 11) / 2 + 1 = 25 places of the first convolution, 25 - 10 of the second; 61 and then 21 across.
  const int64_t steps = 15;
  EXPECT_EQ(CountOf(network, "tanh"), 2 * 2 * steps);
  EXPECT_EQ(CountOf(network, "batch_norm"), 2 * 2 * steps + 3);
  EXPECT_EQ(BytesOf(network, "rearrange"), steps * 2 * (32 * 21) * kElement);
  ExpectSound(network);
  EXPECT_FALSE(Speech({.frames = 30}).ok());
}

}  // namespace
}  // namespace hotpack::remat
