// Whole runs of the paper's networks: blocks that exist before the first iteration, carried blocks, released blocks.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "bench/models/networks.h"
#include "bench/models/seq2seq.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hotpack::bench {
namespace {

// Published counts of weights.
TEST(RunsTest, NetworksHaveTheirWeights) {
  EXPECT_EQ(AlexNet(1).WeightCount(), 62378344);  // convolutions in one group
  EXPECT_EQ(GoogLeNetInTraining(1).WeightCount(), 13378280);
  EXPECT_EQ(GoogLeNet(1).WeightCount(), 13378280);      // the auxiliary classifiers' are held
  EXPECT_EQ(ResNet50(1).WeightCount(), 25557032 + 64);  // and a bias of the first convolution
  EXPECT_EQ(InceptionResNet2(1).WeightCount(), 55843464);
}

TEST(RunsTest, NetworksEndInTheirShapes) {
  EXPECT_EQ(ResNet50(2).WeightCount(), ResNet50(1).WeightCount());  // whatever the batch
  EXPECT_LT(InceptionResNet1(1).WeightCount(), InceptionResNet2(1).WeightCount());
}

// "+3" asks for block 3, "-3" gives it back, "|" begins an iteration.
std::string Told(const Trace& trace) {
  std::string told;
  for (const Event& event : trace.events) {
    told += told.empty() ? "" : " ";
    if (event.kind == EventKind::kMark) {
      told += "|";
    } else {
      told += event.kind == EventKind::kAllocate ? "+" : "-";
      told += std::to_string(event.id);
    }
  }
  return told;
}

TEST(RunsTest, TrainingCarriesGradientsUntilTheNextForwardPassIsThrough) {
  Network net(1);
  net.FullyConnected(net.Input({8, 1, 1}), 4);
  // 0, 1: matrix and bias. 2: input, 3: output, 4: its gradient, 5, 6: those of the weights; 7, 8: the optimizer's.
  EXPECT_EQ(Told(net.RecordTraining(2)),
            "+0 +1 | +2 +3 +4 +5 +6 -4 -2 -3 +7 +8 | +9 +10 -5 -6 +11 +12 +13 -11 -9 -10 |");
}

TEST(RunsTest, ASecondGradientIsAddedToTheFirst) {
  Network net(1);
  const Tensor h = net.Pointwise(net.Input({8, 1, 1}));
  net.Add(h, h);
  // 0: input, 1: h, 2: sum, 3: the sum's gradient, 4, 5: h's, twice.
  EXPECT_EQ(Told(net.RecordTraining(1)), "| +0 +1 +2 +3 +4 +5 -5 -3 -4 -0 -1 -2 |");
}

TEST(RunsTest, InferenceKeepsNothingAndLeavesDropoutOut) {
  Network net(1);
  net.Pointwise(net.Dropout(net.FullyConnected(net.Input({8, 1, 1}), 4)));
  EXPECT_EQ(Told(net.RecordInference(2)), "+0 +1 | +2 +3 +4 -3 -4 -2 | +5 +6 +7 -6 -7 -5 |");
}

struct Counted {
  std::vector<uint64_t> peaks;  // live bytes at most, by iteration
  uint64_t before = 0;          // live bytes where the first iteration begins
  uint64_t end = 0;
};

Counted Count(const Trace& trace) {
  Counted counted;
  std::map<uint64_t, uint64_t> live;
  uint64_t bytes = 0;
  for (const Event& event : trace.events) {
    if (event.kind == EventKind::kMark) {
      if (counted.peaks.empty()) counted.before = bytes;
      counted.peaks.push_back(0);
    } else if (event.kind == EventKind::kAllocate) {
      EXPECT_TRUE(live.emplace(event.id, event.bytes).second);
      bytes += event.bytes;
      if (!counted.peaks.empty()) counted.peaks.back() = std::max(counted.peaks.back(), bytes);
    } else {
      const auto block = live.find(event.id);
      if (block == live.end()) {
        ADD_FAILURE() << event.id << " is not live";
        return counted;
      }
      bytes -= block->second;
      live.erase(block);
    }
  }
  counted.end = bytes;
  return counted;
}

constexpr Seq2SeqSize kSmall = {.vocabulary = 100, .units = 8, .layers = 2, .longest = 9, .generated = 5};
// Two embeddings, two LSTMs of two layers, a matrix and a bias for the scores.
constexpr uint64_t kSmallWeights = 4 * (2 * 800 + 2 * 2 * 8 * (64 + 8) + 800 + 100);

TEST(RunsTest, Seq2SeqTrainingHasWeightsGradientsAndTwoStates) {
  const Counted counted = Count(RecordSeq2SeqTraining(kSmall, 4, 6));
  EXPECT_EQ(counted.before, kSmallWeights);
  EXPECT_EQ(counted.end, 4 * kSmallWeights);
  EXPECT_EQ(counted.peaks.size(), 7u);
  // Sentences differ, so no two mini-batches need the same.
  EXPECT_EQ(std::set<uint64_t>(counted.peaks.begin() + 1, counted.peaks.begin() + 6).size(), 5u);
}

TEST(RunsTest, Seq2SeqInferenceGivesEverythingBackAndGrowsWithTheWords) {
  const Trace trace = RecordSeq2SeqInference(kSmall, 3);
  const Counted counted = Count(trace);
  EXPECT_EQ(counted.before, kSmallWeights);
  EXPECT_EQ(counted.end, kSmallWeights);
  Seq2SeqSize longer = kSmall;
  longer.generated = 50;
  EXPECT_GT(RecordSeq2SeqInference(longer, 3).events.size(), 5 * trace.events.size());
}

}  // namespace
}  // namespace hotpack::bench
