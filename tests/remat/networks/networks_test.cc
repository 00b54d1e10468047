#include <gtest/gtest.h>

#include <array>
#include <map>
#include <string>
#include <vector>

#include "remat/core/schedule.h"
#include "remat/core/simulator.h"
#include "remat/core/verifier.h"
#include "remat/networks/builder.h"
#include "remat/networks/convolutional.h"
#include "remat/networks/inception.h"
#include "remat/networks/k_means.h"
#include "remat/networks/residual.h"
#include "remat/networks/training_graph.h"
#include "remat/networks/transformer.h"

namespace hotpack::remat {
namespace {

double GiB(Bytes bytes) { return static_cast<double>(bytes) / (int64_t{1} << 30); }

// Bytes of the first outputs of the layers, by kind.
std::map<std::string, Bytes> ByKind(const Network& network) {
  std::map<std::string, Bytes> sums;
  for (const Layer& layer : network.layers)
    sums[layer.kind] += network.tensors[static_cast<size_t>(layer.outputs[0])].bytes;
  return sums;
}

// The figures of an independent simulation: 126.7 (each storage its own memory), 46.0 (shared), 28.7 (batch
// normalisation and relu dropped).
TEST(ResNetTest, FeatureMapsOfAThousandConvolutions) {
  const absl::StatusOr<std::array<int64_t, 4>> stages = ResNetStages(1007);
  ASSERT_TRUE(stages.ok());
  EXPECT_EQ(*stages, (std::array<int64_t, 4>{3, 132, 196, 3}));
  const absl::StatusOr<Network> network = ResNet({.stages = *stages, .batch = 32});
  ASSERT_TRUE(network.ok()) << network.status();
  EXPECT_EQ(CountOf(*network, "convolution"), 1007);
  std::map<std::string, Bytes> by_kind = ByKind(*network);
  const Bytes forward = FeatureMapBytes(*network);
  EXPECT_NEAR(2 * GiB(forward), 126.072, 0.001);
  EXPECT_EQ(by_kind["batch_norm"], by_kind["relu"]);
  const Bytes first = 32 * Bytes{64} * 112 * 112 * kElement;  // the ones in front of the blocks
  EXPECT_NEAR(GiB(forward - (by_kind["batch_norm"] - first)), 45.96, 0.01);
  EXPECT_NEAR(GiB(forward - 2 * (by_kind["batch_norm"] - first)), 28.87, 0.01);
  const absl::StatusOr<Graph> graph = TrainingGraph(*network, {.weights = false});
  ASSERT_TRUE(graph.ok()) << graph.status();
  Bytes feature_maps = 0;
  for (const Storage& storage : graph->storages)
    feature_maps += storage.kind == StorageKind::kFeatureMap ? storage.bytes : 0;
  EXPECT_EQ(feature_maps, 2 * forward);
  EXPECT_EQ(Verify(*graph, Baseline(*graph)), "");
}

TEST(ResNetTest, StagesOfOtherDepths) {
  const struct {
    int64_t n;
    std::array<int64_t, 4> stages;
    int64_t convolutions;
  } cases[] = {{50, {3, 4, 6, 3}, 53},     {101, {3, 4, 23, 3}, 104},  {152, {3, 8, 36, 3}, 155},
               {200, {3, 24, 36, 3}, 203}, {17, {1, 1, 1, 1}, 17},     {20, {1, 2, 1, 1}, 20},
               {41, {3, 3, 3, 3}, 41},     {257, {3, 32, 46, 3}, 257}, {1007, {3, 132, 196, 3}, 1007}};
  for (const auto& each : cases) {
    const absl::StatusOr<std::array<int64_t, 4>> stages = ResNetStages(each.n);
    ASSERT_TRUE(stages.ok()) << each.n;
    EXPECT_EQ(*stages, each.stages) << each.n;
    EXPECT_EQ(CountOf(*ResNet({.stages = *stages, .batch = 1, .image = 32}), "convolution"), each.convolutions)
        << each.n;
  }
  for (int64_t n = 17; n < 3000; n += 3) {
    const absl::StatusOr<std::array<int64_t, 4>> stages = ResNetStages(n);
    ASSERT_TRUE(stages.ok()) << n;
    int64_t blocks = 0;
    for (int64_t stage : *stages) {
      EXPECT_GE(stage, 1) << n;
      blocks += stage;
    }
    EXPECT_EQ(3 * blocks + (n == 50 || n == 101 || n == 152 || n == 200 ? 2 : 5), n);
  }
  for (int64_t n : {-1, 0, 14, 16, 18, 51, 1006}) EXPECT_FALSE(ResNetStages(n).ok()) << n;
}

// Published numbers of parameters: VGG's table 2 to the million, and as counted in their common implementations to the
// last one.
TEST(FamiliesTest, NumbersOfWeights) {
  EXPECT_EQ(WeightBytes(*Vgg({.layers = 16, .batch = 1})) / kElement, 138'357'544);
  EXPECT_EQ(WeightBytes(*Vgg({.layers = 19, .batch = 1})) / kElement, 143'667'240);
  EXPECT_EQ(WeightBytes(*Inception({.batch = 1})) / kElement, 23'834'568);
  EXPECT_EQ(CountOf(*Inception({.batch = 1}), "convolution"), 94);
  Bytes others = 0;  // of convolutions and the classifier: the same with and without pre-activation
  const Network resnet = *ResNet({.batch = 1});
  for (const Layer& layer : resnet.layers) {
    for (TensorId weight : layer.weights)
      others += layer.kind == "batch_norm" ? 0 : resnet.tensors[static_cast<size_t>(weight)].bytes;
  }
  EXPECT_EQ(others / kElement, 25'557'032 - 53'120);
  // 31,031,685 in the original with one input channel and two classes, plus nothing for padding.
  EXPECT_NEAR(static_cast<double>(WeightBytes(*UNet({.batch = 1})) / kElement), 31.03e6, 0.01e6);
  // Table 3 of Vaswani et al., base: six encoder layers of 4 · 512² + 2 · 512 · 2048 and their biases and norms.
  const int64_t layer = 4 * (512 * 512 + 512) + 512 * 2048 + 2048 + 2048 * 512 + 512 + 2 * 2 * 512;
  EXPECT_EQ(WeightBytes(*Transformer({.vocabulary = 100})) / kElement, 6 * layer + 100 * 512 + 100 * 512 + 100);
}

// Multiplications and additions of one image, in the forward pass: VGG-16 15.5 · 10^9, ResNet-50 about 4.1, Inception
// v3 5.7.
TEST(FamiliesTest, ArithmeticOfTheForwardPass) {
  const auto work = [](const Network& network) {
    double flops = 0;
    for (const Layer& layer : network.layers) flops += layer.heavy ? layer.flops / 2 : 0;
    return flops / 1e9;
  };
  EXPECT_NEAR(work(*Vgg({.layers = 16, .batch = 1})), 15.47, 0.01);
  EXPECT_NEAR(work(*ResNet({.batch = 1})), 4.09, 0.03);
  EXPECT_NEAR(work(*Inception({.batch = 1})), 5.71, 0.03);
}

TEST(FamiliesTest, ShapesOfInceptionAndUNet) {
  const Network inception = *Inception({.batch = 2});
  std::vector<std::vector<int64_t>> concats;
  for (const Layer& layer : inception.layers) {
    if (layer.kind == "concat") concats.push_back(inception.tensors[static_cast<size_t>(layer.outputs[0])].shape);
  }
  EXPECT_EQ(concats.front(), (std::vector<int64_t>{2, 256, 35, 35}));
  EXPECT_EQ(concats[3], (std::vector<int64_t>{2, 768, 17, 17}));
  EXPECT_EQ(concats.back(), (std::vector<int64_t>{2, 2048, 8, 8}));
  const Network unet = *UNet({.batch = 3, .image = 64});
  EXPECT_EQ(unet.tensors[static_cast<size_t>(unet.results[0].tensor)].shape, (std::vector<int64_t>{3, 2, 64, 64}));
  EXPECT_EQ(CountOf(unet, "convolution"), 19);
  EXPECT_EQ(CountOf(unet, "deconvolution"), 4);
}

// The distances are all that is large, and each iteration's go before the next ones come.
TEST(FamiliesTest, KMeansHoldsOneMatrixOfDistances) {
  const Graph graph = *KMeans({.points = 1000, .dimensions = 8, .clusters = 100, .iterations = 5});
  EXPECT_TRUE(Check(graph).ok());
  EXPECT_EQ(graph.operators.size(), 1u + 4 * 5);
  const auto name = [&graph](StorageId id) { return graph.storages[static_cast<size_t>(id)].name; };
  const Operator& means = graph.operators[8];
  EXPECT_EQ(means.name, "means2");
  EXPECT_EQ(name(means.reads[0]) + " " + name(means.reads[1]) + " " + name(means.writes[0]),
            "points labels2 centroids2");
  const Operator& product = graph.operators[9];
  EXPECT_EQ(product.name, "product3");
  EXPECT_TRUE(product.heavy);
  EXPECT_EQ(name(product.reads[1]), "centroids2");
  const Bytes peak = Simulate(graph, Baseline(graph))->live_peak;
  // points, norms, distances, labels; the centroids have gone by then
  EXPECT_EQ(peak, 4 * (1000 * 8 + 1000 + 1000 * 100 + 1000));
}

}  // namespace
}  // namespace hotpack::remat
