// The sequence-to-sequence program on the host: its layers' gradients are right, padding counts for nothing, it learns,
// repeats bit for bit, and its requests follow the sentences' lengths.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "bench/train/kernels.h"
#include "bench/train/seq2seq_kernels.h"
#include "bench/train/seq2seq_workload.h"
#include "bench/train/trainer.h"
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

Tensor Random(Device& device, int64_t count, uint64_t seed) {
  Tensor tensor(device, count);
  FillUniform(tensor.data(), count, seed, 1.0f);
  return tensor;
}

// A layer's loss for these tests: the sum of its results, each times a fixed weight. In double, so that the differences
// mean something.
double Weighted(const Tensor& values, const Tensor& weights) {
  double sum = 0;
  for (int64_t i = 0; i < values.count(); ++i) sum += static_cast<double>(values.data()[i]) * weights.data()[i];
  return sum;
}

// Compares a gradient with differences of `loss` as each element of `value` moves.
void ExpectGradient(Tensor& value, const Tensor& gradient, const std::function<double()>& loss,
                    const std::string& what) {
  constexpr float kStep = 1e-2f;
  ASSERT_EQ(value.count(), gradient.count()) << what;
  double largest = 0;
  for (int64_t i = 0; i < value.count(); ++i) {
    const float kept = value.data()[i];
    value.data()[i] = kept - kStep;
    const double below = loss();
    value.data()[i] = kept + kStep;
    const double above = loss();
    value.data()[i] = kept;
    const double numeric = (above - below) / (2.0 * static_cast<double>(kStep));
    EXPECT_NEAR(gradient.data()[i], numeric, 3e-3) << what << ", element " << i;
    largest = std::max(largest, std::abs(numeric));
  }
  EXPECT_GT(largest, 0.05) << what << ": no gradient to compare";
}

// One step of a stack: rows of which one has ended, states before it that are not zero.
struct StackCase {
  static constexpr int kRows = 3, kWidth = 4, kLayers = 2, kStep = 1;
  explicit StackCase(Device& host)
      : device(host),
        stack(host, parameters, kLayers, kWidth, 5),
        lengths(host, std::vector<int32_t>{2, 1, 5}),
        input(Random(host, kRows * kWidth, 11)),
        top_weights(Random(host, kRows * kWidth, 12)) {
    for (int layer = 0; layer < kLayers; ++layer) {
      LstmStep& before = previous.emplace_back();
      const uint64_t seed = 20 + static_cast<uint64_t>(layer) * 10;
      before.cell = Random(host, kRows * kWidth, seed);
      before.hidden = Random(host, kRows * kWidth, seed + 1);
      carried.hidden.push_back(Random(host, kRows * kWidth, seed + 2));
      carried.cell.push_back(Random(host, kRows * kWidth, seed + 3));
      hidden_weights.push_back(Random(host, kRows * kWidth, seed + 2));
      cell_weights.push_back(Random(host, kRows * kWidth, seed + 3));
    }
  }
  double Loss() {
    const StackStep now = stack.Step(input.data(), previous, lengths.data(), kStep, kRows, false);
    double loss = Weighted(now.back().hidden, top_weights);
    for (size_t layer = 0; layer < now.size(); ++layer) {
      loss += Weighted(now[layer].hidden, hidden_weights[layer]) + Weighted(now[layer].cell, cell_weights[layer]);
    }
    return loss;
  }

  Device& device;
  std::vector<Parameter> parameters;
  LstmStack stack;
  Labels lengths;
  Tensor input, top_weights;
  StackStep previous;
  CarriedGradients carried;
  std::vector<Tensor> hidden_weights, cell_weights;
};

TEST(LstmStackTest, GradientsAgreeWithDifferences) {
  const auto device = MakeHostDevice();
  StackCase test(*device);
  StackStep now =
      test.stack.Step(test.input.data(), test.previous, test.lengths.data(), StackCase::kStep, StackCase::kRows, true);
  const Tensor input_gradient = test.stack.StepBackward(test.input.data(), test.previous, std::move(now),
                                                        Tensor(*device, test.top_weights.ToHost()), test.lengths.data(),
                                                        StackCase::kStep, StackCase::kRows, test.carried);
  const auto loss = [&] { return test.Loss(); };
  ExpectGradient(test.input, input_gradient, loss, "input");
  for (size_t layer = 0; layer < test.previous.size(); ++layer) {
    const std::string of = " of layer " + std::to_string(layer);
    ExpectGradient(test.previous[layer].hidden, test.carried.hidden[layer], loss, "previous hidden" + of);
    ExpectGradient(test.previous[layer].cell, test.carried.cell[layer], loss, "previous cell" + of);
  }
  for (size_t p = 0; p < test.parameters.size(); ++p) {
    ExpectGradient(test.parameters[p].value, test.parameters[p].gradient, loss, "parameter " + std::to_string(p));
  }
}

TEST(LstmStackTest, RowsThatHaveEndedKeepTheirState) {
  const auto device = MakeHostDevice();
  StackCase test(*device);
  const StackStep now =
      test.stack.Step(test.input.data(), test.previous, test.lengths.data(), StackCase::kStep, StackCase::kRows, false);
  for (size_t layer = 0; layer < now.size(); ++layer) {
    for (int64_t i = 0; i < now[layer].cell.count(); ++i) {
      const bool ended = i / StackCase::kWidth == 1;
      EXPECT_EQ(now[layer].cell.data()[i] == test.previous[layer].cell.data()[i], ended) << i;
      EXPECT_EQ(now[layer].hidden.data()[i] == test.previous[layer].hidden.data()[i], ended) << i;
    }
  }
}

// One element by hand: gates' sums 0, 0, 1, 0 give gates 1/2, 1/2, tanh 1, 1/2.
TEST(LstmKernelTest, ForwardAgreesWithHandComputedValues) {
  const std::vector<float> from_input = {0.5f, 0, 0.25f, 0}, from_hidden = {-0.5f, 0, 0.25f, 0}, bias = {0, 0, 0.5f, 0};
  const float before_hidden = 7, before_cell = 0.4f;
  float gates[4], cell = 0, hidden = 0;
  LstmForward(from_input.data(), from_hidden.data(), bias.data(), &before_hidden, &before_cell, nullptr, 0, gates,
              &cell, &hidden, 1, 1);
  EXPECT_NEAR(cell, 0.5 * 0.4 + 0.5 * std::tanh(1.0), 1e-6);
  EXPECT_NEAR(hidden, 0.5 * std::tanh(0.2 + 0.5 * std::tanh(1.0)), 1e-6);
  EXPECT_NEAR(gates[2], std::tanh(1.0), 1e-6);
}

struct AttentionCase {
  static constexpr int kRows = 3, kWidth = 4, kSteps = 5;
  explicit AttentionCase(Device& device)
      : attention(device, parameters, kWidth, 3),
        lengths(device, std::vector<int32_t>{5, 1, 3}),
        hidden(Random(device, kRows * kWidth, 31)),
        out_weights(Random(device, kRows * kWidth, 32)) {
    memory.states = Random(device, kSteps * kRows * kWidth, 33);
    memory.lengths = lengths.data();
    memory.rows = kRows;
    memory.steps = kSteps;
  }
  double Loss() { return Weighted(attention.Forward(hidden.data(), memory).out, out_weights); }

  std::vector<Parameter> parameters;
  Attention attention;
  Labels lengths;
  Memory memory;
  Tensor hidden, out_weights;
};

TEST(AttentionTest, GradientsAgreeWithDifferences) {
  const auto device = MakeHostDevice();
  AttentionCase test(*device);
  Tensor memory_gradient(*device, test.memory.states.count());
  Fill(memory_gradient.data(), memory_gradient.count(), 0.0f);
  const Tensor hidden_gradient =
      test.attention.Backward(test.hidden.data(), test.attention.Forward(test.hidden.data(), test.memory),
                              Tensor(*device, test.out_weights.ToHost()), test.memory, memory_gradient);
  const auto loss = [&] { return test.Loss(); };
  ExpectGradient(test.hidden, hidden_gradient, loss, "hidden");
  ExpectGradient(test.memory.states, memory_gradient, loss, "memory");
  for (size_t p = 0; p < test.parameters.size(); ++p) {
    ExpectGradient(test.parameters[p].value, test.parameters[p].gradient, loss, "parameter " + std::to_string(p));
  }
}

TEST(AttentionTest, WeightsAreAShareOfEachRowsOwnSteps) {
  const auto device = MakeHostDevice();
  AttentionCase test(*device);
  const std::vector<float> weights = test.attention.Forward(test.hidden.data(), test.memory).weights.ToHost();
  for (int row = 0; row < AttentionCase::kRows; ++row) {
    float sum = 0;
    for (int step = 0; step < AttentionCase::kSteps; ++step) {
      const float weight = weights[static_cast<size_t>(row * AttentionCase::kSteps + step)];
      EXPECT_EQ(weight > 0, step < test.lengths.data()[row]) << row << ", " << step;
      sum += weight;
    }
    EXPECT_NEAR(sum, 1.0f, 1e-6f);
  }
}

// More columns than a chunk, so that chunks are put together.
TEST(SoftmaxKernelTest, ChunksGiveTheWholeRowsLossAndBestWord) {
  const auto device = MakeHostDevice();
  constexpr int kRows = 2, kColumns = 2 * kChunk + 5;
  Tensor logits = Random(*device, kRows * kColumns, 41);
  logits.data()[kChunk + 3] = 9.0f;             // row 0: in the second chunk
  logits.data()[kColumns + kColumns - 1] = 60;  // row 1: the last, where exp() of the plain logits would be large
  Tensor largest(*device, kRows * Chunks(kColumns)), sums(*device, kRows * Chunks(kColumns)), log_sums(*device, kRows);
  ChunkSums(logits.data(), largest.data(), sums.data(), kRows, kColumns);
  LogSums(largest.data(), sums.data(), log_sums.data(), kRows, Chunks(kColumns));
  Labels best(*device, kRows * Chunks(kColumns)), words(*device, kRows);
  ChunkBest(logits.data(), best.data(), kRows, kColumns);
  BestWords(logits.data(), best.data(), words.data(), kRows, kColumns);
  EXPECT_EQ(words.ToHost(), (std::vector<int32_t>{kChunk + 3, kColumns - 1}));
  for (int row = 0; row < kRows; ++row) {
    double sum = 0;
    for (int c = 0; c < kColumns; ++c) sum += std::exp(static_cast<double>(logits.data()[row * kColumns + c]));
    EXPECT_NEAR(log_sums.data()[row], std::log(sum), 1e-5);
  }
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
      EXPECT_LT(LargestGradientError(*device, workload, 4), kGradientTolerance) << "seed " << seed << ", " << max_words;
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
    std::vector<float> values;
    Train(*device, workload, SmallTraining(10), [&](int64_t, float loss) { values.push_back(loss); });
    return values;
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
