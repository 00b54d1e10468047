// Compares the layer tables with published figures of the networks, and the packer with the optima of the paper.
#include <algorithm>
#include <map>

#include "bench/models/networks.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "packer/bounds.h"
#include "packer/pack.h"
#include "packer/validator.h"

namespace hotpack::bench {
namespace {

void ExpectOptimum(const Instance& instance, Bytes optimum) {
  EXPECT_EQ(MaxLoad(instance), optimum);
  for (const Algorithm algorithm : {Algorithm::kBestFit, Algorithm::kAuto}) {
    const PackResult result = Pack(instance, {.algorithm = algorithm});
    ASSERT_EQ(result.status, PackStatus::kOk);
    EXPECT_EQ(result.placement.height, optimum) << AlgorithmName(algorithm);
    EXPECT_TRUE(result.proven_optimal) << AlgorithmName(algorithm);
    EXPECT_EQ(Validate(instance, result.placement), "");
  }
}

// Sekiyama 2018, §5.2: the optima by CPLEX, which the heuristic reached.
TEST(PaperTest, AlexNetInferenceIsPackedOptimally) { ExpectOptimum(AlexNet(1).Inference(), 10169344); }
TEST(PaperTest, GoogLeNetInferenceIsPackedOptimally) { ExpectOptimum(GoogLeNet(1).Inference(), 12202496); }

// Returns the number of requests by rounded size, for a given number of bytes.
std::map<Bytes, int> Sizes(const Instance& instance) {
  std::map<Bytes, int> sizes;
  for (const Block& block : instance.blocks) ++sizes[block.size];
  return sizes;
}

TEST(NetworksTest, AlexNetHasItsLayers) {
  const std::map<Bytes, int> sizes = Sizes(AlexNet(1).Inference());
  EXPECT_EQ(sizes.at(Network::kWorkspace), 5);  // five convolutions
  EXPECT_EQ(sizes.at(618496), 1);               // the image, 3·227²·4 = 618348
  EXPECT_EQ(sizes.at(1161728), 3);              // 96·55²·4 = 1161600: convolution, relu, normalisation
  EXPECT_EQ(sizes.at(280064), 1);               // 96·27²·4 = 279936: pooled
  EXPECT_EQ(sizes.at(256 * 27 * 27 * 4), 3);
  EXPECT_EQ(sizes.at(259584), 4);           // 384·13²·4: two convolutions and their relus
  EXPECT_EQ(sizes.at(256 * 6 * 6 * 4), 1);  // the operand of the first fully connected layer
  EXPECT_EQ(sizes.at(4096 * 4), 4);         // two fully connected layers and their relus
  EXPECT_EQ(sizes.at(512), 2);              // label and loss
}

TEST(NetworksTest, GoogLeNetHasItsLayers) {
  const Network net = GoogLeNet(1);
  const std::map<Bytes, int> sizes = Sizes(net.Inference());
  EXPECT_EQ(sizes.at(Network::kWorkspace), 3 + 9 * 6);  // the first three, six an inception
  EXPECT_EQ(sizes.at(602112), 1 + 3);  // the image 3·224²·4; 192·28²·4: pooled, pooled in 3a, 3×3 branch of 3b
  EXPECT_EQ(sizes.at(64 * 112 * 112 * 4), 2);    // the first convolution and its relu
  EXPECT_EQ(sizes.at(480 * 28 * 28 * 4), 2);     // Table 1's output of 3b: 28×28×480
  EXPECT_EQ(sizes.at(832 * 14 * 14 * 4), 2);     // of 4e: 14×14×832
  EXPECT_EQ(sizes.at(1024 * 7 * 7 * 4), 2 + 4);  // of 5b: 7×7×1024; as much: one branch of 3a, 3b, 4c, 4e each
  EXPECT_EQ(sizes.at(1024 * 4), 1 + 2);          // the last pooling; the classifier's 1000 values and their softmax
}

TEST(NetworkTest, InferenceReleasesWithTheLastReaderAndTheWorkspaceWithItsLayer) {
  Network net(1);
  const Tensor image = net.Input({128, 1, 1});
  const Tensor a = net.Conv(image, 256, {});
  const Tensor b = net.Pointwise(a);
  net.Concat({a, b});
  const Instance instance = net.Inference();
  // clock  1      2  3          4          5  6       7           8  9  10
  //        image  a  workspace  released   b  concat  a released  b  concat  image
  const std::vector<std::tuple<Bytes, Clock, Clock>> expected = {
      {512, 1, 10}, {1024, 2, 7}, {Network::kWorkspace, 3, 4}, {1024, 5, 8}, {2048, 6, 9}};
  std::vector<std::tuple<Bytes, Clock, Clock>> seen;
  for (const Block& block : instance.blocks) {
    ASSERT_EQ(block.residency.size(), 1u);
    seen.emplace_back(block.size, block.residency[0].begin, block.residency[0].end);
  }
  EXPECT_EQ(seen, expected);
}

TEST(NetworkTest, TrainingKeepsOutputsForTheBackwardPass) {
  Network net(2);
  const Tensor image = net.Input({64, 1, 1});
  net.Pointwise(net.Conv(image, 128, {}));
  const Instance instance = net.Training();
  // clock  1      2  3–4        5  6          7         8, 9           10–11
  //        image  a  workspace  b  b's grad.  a's grad. b, b's grad.   workspace: weights; then a, a's grad., image
  const std::vector<std::tuple<Bytes, Clock, Clock>> expected = {
      {512, 1, 14}, {1024, 2, 12}, {Network::kWorkspace, 3, 4},  {1024, 5, 8},
      {1024, 6, 9}, {1024, 7, 13}, {Network::kWorkspace, 10, 11}};
  std::vector<std::tuple<Bytes, Clock, Clock>> seen;
  for (const Block& block : instance.blocks) {
    seen.emplace_back(block.size, block.residency[0].begin, block.residency[0].end);
  }
  EXPECT_EQ(seen, expected);
}

TEST(NetworksTest, TrainingNeedsMoreThanInferenceAndGrowsWithTheBatch) {
  for (Network (*network)(int64_t) : {AlexNet, GoogLeNet}) {
    const Bytes inference = MaxLoad(network(1).Inference());
    const Bytes one = MaxLoad(network(1).Training());
    const Bytes many = MaxLoad(network(32).Training());
    EXPECT_GT(one, inference);
    EXPECT_GT(many, 8 * (one - Network::kWorkspace));
    EXPECT_EQ(CheckInstance(network(32).Training()), PackStatus::kOk);
  }
}

}  // namespace
}  // namespace hotpack::bench
