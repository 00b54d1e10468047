#include <gtest/gtest.h>

#include <map>
#include <string>

#include "planner/networks/builder.h"
#include "planner/networks/residual.h"
#include "planner/networks/training_graph.h"
#include "planner/schedule.h"
#include "planner/simulator.h"
#include "planner/verifier.h"

namespace hotpack::planner {
namespace {

double GiB(Bytes bytes) { return static_cast<double>(bytes) / (int64_t{1} << 30); }

// Bytes of the first outputs of the layers, by kind.
std::map<std::string, Bytes> ByKind(const Network& network) {
  std::map<std::string, Bytes> sums;
  for (const Layer& layer : network.layers) sums[layer.kind] += network.tensors[static_cast<size_t>(layer.outputs[0])].bytes;
  return sums;
}

// The figures of an independent simulation: 126.7 (each storage its own memory), 46.0 (shared), 28.7 (batch normalisation and relu dropped).
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
  for (const Storage& storage : graph->storages) feature_maps += storage.kind == StorageKind::kFeatureMap ? storage.bytes : 0;
  EXPECT_EQ(feature_maps, 2 * forward);
  EXPECT_EQ(Verify(*graph, Baseline(*graph)), "");
}

}  // namespace
}  // namespace hotpack::planner
