// The sequence-to-sequence program on the host: its gradients are right, padding does not count, it learns, it repeats
// bit for bit, and its requests follow the sentences' lengths.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "bench/train/seq2seq_workload.h"
#include "bench/train/trainer.h"
#include "tests/bench/train_checks.h"
#include "tests/bench/train_devices.h"

namespace hotpack::train {
namespace {

constexpr Seq2SeqShape kTiny = kTinySeq2Seq;

Seq2SeqOptions Options(const Seq2SeqShape& shape, int max_words) {
  Seq2SeqOptions options;
  options.shape = shape;
  options.max_words = max_words;
  options.generated_words = max_words + 1;
  return options;
}

TEST(TaskTest, BatchesRepeatVaryInLengthAndAreCutInTraining) {
  const TranslationTask task(1, 20, 80);
  std::set<int> lengths;
  int longest_evaluated = 0;
  for (int64_t number = 1; number <= 40; ++number) {
    const SentenceBatch batch = task.MakeBatch(number, 8);
    EXPECT_EQ(batch.source, task.MakeBatch(number, 8).source);
    EXPECT_LE(batch.source_steps, kTrainingCut);
    EXPECT_EQ(batch.target_steps, batch.source_steps + 1);
    EXPECT_EQ(*std::max_element(batch.source_lengths.begin(), batch.source_lengths.end()), batch.source_steps);
    lengths.insert(batch.source_steps);
    longest_evaluated = std::max(longest_evaluated, task.MakeBatch(-number, 8).source_steps);
  }
  EXPECT_GT(lengths.size(), 10u);
  EXPECT_EQ(*lengths.rbegin(), kTrainingCut);
  EXPECT_GT(longest_evaluated, kTrainingCut);
}

TEST(TaskTest, TargetsAreCounterpartsInReverse) {
  const TranslationTask task(3, 12, 6);
  std::vector<int32_t> counterpart(12, -1);
  for (int64_t number = 1; number <= 20; ++number) {
    const SentenceBatch batch = task.MakeBatch(number, 4);
    for (int row = 0; row < 4; ++row) {
      const int length = batch.source_lengths[static_cast<size_t>(row)];
      const auto at = [&](const std::vector<int32_t>& words, int step) {
        return words[static_cast<size_t>(step * 4 + row)];
      };
      ASSERT_EQ(batch.target_lengths[static_cast<size_t>(row)], length + 1);
      EXPECT_EQ(at(batch.targets, length), kEnd);
      EXPECT_EQ(at(batch.inputs, 0), kBegin);
      for (int step = 0; step < length; ++step) {
        const int32_t target = at(batch.targets, length - 1 - step);
        int32_t& expected = counterpart[static_cast<size_t>(at(batch.source, step))];
        if (expected < 0) expected = target;
        EXPECT_EQ(target, expected);
        EXPECT_EQ(at(batch.inputs, length - step), target);
      }
    }
  }
}

TEST(TaskTest, WordIndexNamesEachPositionButPadding) {
  const WordIndex index = MakeWordIndex({5, 4, 4, 0, 5, 0}, {3, 1}, 6);  // rows "5 4 5" and "4", time-major
  EXPECT_EQ(index.offsets, (std::vector<int32_t>{0, 0, 0, 0, 0, 2, 4}));
  EXPECT_EQ(std::vector<int32_t>(index.positions.begin(), index.positions.begin() + 4),
            (std::vector<int32_t>{1, 2, 0, 4}));
}

TEST(Seq2SeqTest, GradientsAgreeWithDifferencesOfTheLoss) {
  const auto device = MakeHostDevice();
  std::set<int> lengths;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    for (const int max_words : {1, 5}) {
      lengths.insert(TranslationTask(seed, kTiny.vocabulary, max_words).MakeBatch(1, 4).source_steps);
      Seq2SeqWorkload workload(*device, Options(kTiny, max_words), seed);
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", " << max_words);
      ExpectRightGradients(*device, workload, 4);
    }
  }
  EXPECT_GE(lengths.size(), 3u) << "lengths vary";
}

std::vector<std::vector<float>> Gradients(Device& device, Seq2Seq& model, const SentenceBatch& batch, float weight,
                                          float* loss) {
  ZeroGradients(model.parameters());
  *loss = model.LossAndGradients(StartSentences(device, batch, kTiny.vocabulary), weight).ToHost()[0];
  std::vector<std::vector<float>> gradients;
  for (const Parameter& parameter : model.parameters()) gradients.push_back(parameter.gradient.ToHost());
  return gradients;
}

TEST(Seq2SeqTest, PaddingWordsChangeNothing) {
  const auto device = MakeHostDevice();
  const TranslationTask task(2, kTiny.vocabulary, 6);
  Seq2Seq model(*device, kTiny, 2);
  int padded = 0;
  for (int64_t number = 1; number <= 5; ++number) {
    SentenceBatch batch = task.MakeBatch(number, 5);
    float loss = 0, changed_loss = 0;
    const auto gradients = Gradients(*device, model, batch, 1.0f, &loss);
    const auto change = [&](std::vector<int32_t>& words, const std::vector<int32_t>& lengths) {
      for (size_t i = 0; i < words.size(); ++i) {
        if (static_cast<int32_t>(i / lengths.size()) < lengths[i % lengths.size()]) continue;
        words[i] = kFirstWord + static_cast<int32_t>(i % 3);
        ++padded;
      }
    };
    change(batch.source, batch.source_lengths);
    change(batch.inputs, batch.target_lengths);
    change(batch.targets, batch.target_lengths);
    EXPECT_EQ(gradients, Gradients(*device, model, batch, 1.0f, &changed_loss)) << "batch " << number;
    EXPECT_EQ(loss, changed_loss);
  }
  EXPECT_GT(padded, 20);
}

// One row of a batch, alone: without padding.
SentenceBatch RowAlone(const SentenceBatch& batch, size_t row) {
  const auto rows = static_cast<size_t>(batch.rows);
  const auto words = [&](const std::vector<int32_t>& all, int32_t length) {
    std::vector<int32_t> of_row;
    for (size_t step = 0; step < static_cast<size_t>(length); ++step) of_row.push_back(all[step * rows + row]);
    return of_row;
  };
  SentenceBatch one;
  one.rows = 1;
  one.source_steps = batch.source_lengths[row];
  one.target_steps = batch.target_lengths[row];
  one.source_lengths = {one.source_steps};
  one.target_lengths = {one.target_steps};
  one.source = words(batch.source, one.source_steps);
  one.inputs = words(batch.inputs, one.target_steps);
  one.targets = words(batch.targets, one.target_steps);
  return one;
}

// A row's loss is its own, whatever the others' lengths: those of the rows alone average to the batch's.
TEST(Seq2SeqTest, LossIsTheMeanOfTheRowsLosses) {
  const auto device = MakeHostDevice();
  const TranslationTask task(4, kTiny.vocabulary, 9);
  Seq2Seq model(*device, kTiny, 4);
  int told = 0;
  for (int64_t number = 1; number <= 8; ++number) {
    const SentenceBatch pair = task.MakeBatch(number, 2);
    const int32_t shorter = std::min(pair.source_lengths[0], pair.source_lengths[1]);
    told += shorter > 1 && shorter < pair.source_steps;
    const float whole = model.Loss(StartSentences(*device, pair, kTiny.vocabulary), 1.0f).ToHost()[0];
    float sum = 0;
    for (size_t row = 0; row < 2; ++row) {
      sum += model.Loss(StartSentences(*device, RowAlone(pair, row), kTiny.vocabulary), 0.5f).ToHost()[0];
    }
    EXPECT_NEAR(whole, sum, 1e-6f * whole) << "batch " << number;
  }
  EXPECT_GE(told, 3) << "batches with padding";
}

TrainOptions SmallTraining(int steps) {
  TrainOptions options;
  options.rows = 16;
  options.steps = steps;
  options.last_rows = 7;
  options.evaluations = 1;
  options.optimizer.rate = 0.01f;
  return options;
}

constexpr Seq2SeqShape kSmall = {.vocabulary = 10, .width = 16, .layers = 1};

TEST(Seq2SeqTest, LearnsTheTask) {
  const auto device = MakeHostDevice();
  Seq2SeqWorkload workload(*device, Options(kSmall, 4), 1);
  const double untrained = workload.Evaluate(-1, 64);
  const TrainResult result = Train(*device, workload, SmallTraining(400), [](int64_t, float) {});
  EXPECT_LT(result.last_loss, 0.3f * result.first_loss);
  EXPECT_LT(untrained, 0.4);
  EXPECT_GT(workload.Evaluate(-1, 64), 0.8);
}

TEST(Seq2SeqTest, EqualRunsGiveEqualBits) {
  const auto device = MakeHostDevice();
  const auto losses = [&](uint64_t seed) {
    Seq2SeqWorkload workload(*device, Options(kSmall, 4), seed);
    return Losses(*device, workload, SmallTraining(10));
  };
  EXPECT_EQ(losses(1), losses(1));
  EXPECT_NE(losses(1), losses(2));
}

TEST(Seq2SeqTest, RequestsFollowTheLengthsAndNothingIsLeftBehind) {
  SlowCopyDevice device;
  std::vector<size_t> counts, live;
  {
    Seq2SeqWorkload workload(device, Options(kTiny, 9), 1);
    TrainOptions options = SmallTraining(12);
    options.epochs = 2;
    Train(device, workload, options, [&](int64_t, float) {
      counts.push_back(device.TakeRequests().size());
      live.push_back(device.LiveBytes());
    });
    size_t kept = 0;  // weights, moments and gradients
    for (const Parameter& parameter : workload.parameters())
      kept += 4 * static_cast<size_t>(parameter.value.count()) * 4;
    for (size_t step = 0; step + 1 < live.size(); ++step) {
      if (step + 1 == static_cast<size_t>(options.steps)) continue;  // nothing is in flight over an epoch's end
      EXPECT_GT(live[step], kept) << "the next step's inputs";
    }
    EXPECT_EQ(device.LiveBytes(), kept);
  }
  EXPECT_EQ(device.LiveBytes(), 0u);
  EXPECT_GE(std::set<size_t>(counts.begin(), counts.end()).size(), 5u);
  const TranslationTask task(1, kTiny.vocabulary, 9);
  for (size_t a = 1; a + 1 < 11; ++a) {  // steps whose prefetch, evaluation and rows do not differ
    const int steps = task.MakeBatch(static_cast<int64_t>(a) + 1, 16).source_steps;
    const int next = task.MakeBatch(static_cast<int64_t>(a) + 2, 16).source_steps;
    EXPECT_EQ(counts[a] < counts[a + 1], steps < next) << "step " << a + 1;
  }
}

TEST(Seq2SeqTest, GenerationRunsAllStepsUnlessToldToStop) {
  CountingDevice device;
  Seq2Seq model(device, kTiny, 1);
  // Only the output's bias speaks: every word is kEnd.
  std::vector<float> bias(static_cast<size_t>(kTiny.vocabulary), 0.0f);
  bias[kEnd] = 100.0f;
  device.CopyIn(model.parameters().back().value.data(), bias.data(), bias.size() * sizeof(float));
  const SentenceBatch batch = TranslationTask(1, kTiny.vocabulary, 3).MakeBatch(-1, 2);
  device.TakeRequests();
  EXPECT_EQ(model.Generate(StartSources(device, batch), 20, false), std::vector<int32_t>(40, kEnd));
  const size_t all = device.TakeRequests().size();
  std::vector<int32_t> stopped(40, kPadding);
  stopped[0] = stopped[1] = kEnd;
  EXPECT_EQ(model.Generate(StartSources(device, batch), 20, true), stopped);
  EXPECT_LT(device.TakeRequests().size(), all / 2);
}

}  // namespace
}  // namespace hotpack::train
