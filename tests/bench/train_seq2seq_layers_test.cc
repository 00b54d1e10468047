// The sequence-to-sequence model's layers and kernels, compiled for the host: their results and their gradients are
// right.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "bench/train/kernels.h"
#include "bench/train/seq2seq_kernels.h"
#include "bench/train/seq2seq_layers.h"

namespace hotpack::train {
namespace {

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

}  // namespace
}  // namespace hotpack::train
