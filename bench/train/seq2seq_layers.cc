#include "bench/train/seq2seq_layers.h"

#include <cmath>
#include <utility>

#include "bench/train/kernels.h"
#include "bench/train/seq2seq_kernels.h"

namespace hotpack::train {
namespace {

enum LstmWeights : size_t { kInput, kHidden, kBias };
enum AttentionParameters : size_t { kQuery, kContext, kState, kOutBias };

int64_t Elements(int rows, int columns) { return static_cast<int64_t>(rows) * columns; }

Tensor Zeros(Device& device, int64_t count) {
  Tensor zeros(device, count);
  Fill(zeros.data(), count, 0.0f);
  return zeros;
}

Tensor Sum(Device& device, const Tensor& a, const Tensor& b) {
  Tensor sum(device, a.count());
  Add(a.data(), b.data(), sum.data(), a.count());
  return sum;
}

// [rows, in] · [in, out]
Tensor Times(Device& device, const float* input, const Parameter& weights, int rows, int in, int out) {
  Tensor product(device, Elements(rows, out));
  MatMul(input, weights.value.data(), product.data(), rows, out, in);
  return product;
}

// [rows, out] · [in, out]ᵀ
Tensor TimesTransposed(Device& device, const Tensor& gradient, const Parameter& weights, int rows, int in, int out) {
  Tensor product(device, Elements(rows, in));
  MatMulTransposedB(gradient.data(), weights.value.data(), product.data(), rows, in, out);
  return product;
}

}  // namespace

size_t AppendParameter(Device& device, std::vector<Parameter>& parameters, int64_t count, uint64_t seed, float scale) {
  Parameter& parameter = parameters.emplace_back();
  parameter.value = Tensor(device, count);
  FillUniform(parameter.value.data(), count, seed + parameters.size() * 0x51ed2701u, scale);
  return parameters.size() - 1;
}

void AddWeightGradient(Device& device, Parameter& weights, const float* input, const float* gradient, int rows, int in,
                       int out) {
  Tensor step_gradient(device, Elements(in, out));
  MatMulTransposedASliced(input, gradient, step_gradient.data(), in, out, rows, 1);
  AddGradient(device, weights, std::move(step_gradient));
}

void AddBiasGradient(Device& device, Parameter& bias, const float* gradient, int rows, int columns) {
  Tensor step_gradient(device, columns);
  SumSlices(gradient, step_gradient.data(), rows, columns);
  AddGradient(device, bias, std::move(step_gradient));
}

LstmStack::LstmStack(Device& device, std::vector<Parameter>& parameters, int layers, int width, uint64_t seed)
    : device_(device),
      parameters_(parameters),
      first_(parameters.size()),
      layers_(static_cast<size_t>(layers)),
      width_(width) {
  const float scale = 1.0f / std::sqrt(static_cast<float>(width));
  for (size_t layer = 0; layer < layers_; ++layer) {
    AppendParameter(device, parameters, Elements(width, 4 * width), seed, scale);
    AppendParameter(device, parameters, Elements(width, 4 * width), seed, scale);
    AppendParameter(device, parameters, 4 * width, seed, 0.0f);
    // An open forget gate lets gradients pass from the start (Jozefowicz et al. 2015).
    Fill(Weights(layer, kBias).value.data() + width, width, 1.0f);
  }
}

StackStep LstmStack::Start(int rows) const {
  StackStep start(layers_);
  for (LstmStep& layer : start) {
    layer.cell = Zeros(device_, Elements(rows, width_));
    layer.hidden = Zeros(device_, Elements(rows, width_));
  }
  return start;
}

CarriedGradients LstmStack::StartBackward(int rows) const {
  CarriedGradients carried;
  for (size_t layer = 0; layer < layers_; ++layer) {
    carried.hidden.push_back(Zeros(device_, Elements(rows, width_)));
    carried.cell.push_back(Zeros(device_, Elements(rows, width_)));
  }
  return carried;
}

StackStep LstmStack::Step(const float* input, const StackStep& previous, const int32_t* lengths, int step, int rows,
                          bool training) const {
  StackStep now(layers_);
  for (size_t layer = 0; layer < layers_; ++layer) {
    const LstmStep& before = previous[layer];
    const Tensor from_input = Times(device_, input, Weights(layer, kInput), rows, width_, 4 * width_);
    const Tensor from_hidden = Times(device_, before.hidden.data(), Weights(layer, kHidden), rows, width_, 4 * width_);
    Tensor gates(device_, Elements(rows, 4 * width_));
    now[layer].cell = Tensor(device_, Elements(rows, width_));
    now[layer].hidden = Tensor(device_, Elements(rows, width_));
    LstmForward(from_input.data(), from_hidden.data(), Weights(layer, kBias).value.data(), before.hidden.data(),
                before.cell.data(), lengths, step, gates.data(), now[layer].cell.data(), now[layer].hidden.data(), rows,
                width_);
    if (training) now[layer].gates = std::move(gates);
    input = now[layer].hidden.data();
  }
  return now;
}

Tensor LstmStack::LayerBackward(size_t layer, const float* input, const LstmStep& previous, LstmStep& now,
                                Tensor from_above, const int32_t* lengths, int step, int rows,
                                CarriedGradients& carried) const {
  Tensor hidden_gradient = Sum(device_, carried.hidden[layer], from_above);
  from_above.Reset();
  carried.hidden[layer].Reset();
  Tensor sum_gradient(device_, Elements(rows, 4 * width_));
  Tensor cell_gradient(device_, Elements(rows, width_));
  LstmBackward(hidden_gradient.data(), carried.cell[layer].data(), now.gates.data(), previous.cell.data(),
               now.cell.data(), lengths, step, sum_gradient.data(), cell_gradient.data(), rows, width_);
  carried.cell[layer] = std::move(cell_gradient);
  now.gates.Reset();
  AddWeightGradient(device_, Weights(layer, kInput), input, sum_gradient.data(), rows, width_, 4 * width_);
  AddWeightGradient(device_, Weights(layer, kHidden), previous.hidden.data(), sum_gradient.data(), rows, width_,
                    4 * width_);
  AddBiasGradient(device_, Weights(layer, kBias), sum_gradient.data(), rows, 4 * width_);
  carried.hidden[layer] = TimesTransposed(device_, sum_gradient, Weights(layer, kHidden), rows, width_, 4 * width_);
  KeepEndedRows(hidden_gradient.data(), lengths, step, carried.hidden[layer].data(), rows, width_);
  hidden_gradient.Reset();
  return TimesTransposed(device_, sum_gradient, Weights(layer, kInput), rows, width_, 4 * width_);
}

Tensor LstmStack::StepBackward(const float* input, const StackStep& previous, StackStep now, Tensor top_gradient,
                               const int32_t* lengths, int step, int rows, CarriedGradients& carried) const {
  Tensor gradient = std::move(top_gradient);
  for (size_t layer = layers_; layer-- > 0;) {
    const float* layer_input = layer == 0 ? input : now[layer - 1].hidden.data();
    gradient = LayerBackward(layer, layer_input, previous[layer], now[layer], std::move(gradient), lengths, step, rows,
                             carried);
    now[layer] = {};
  }
  return gradient;
}

Attention::Attention(Device& device, std::vector<Parameter>& parameters, int width, uint64_t seed)
    : device_(device), parameters_(parameters), first_(parameters.size()), width_(width) {
  const float scale = std::sqrt(1.5f / static_cast<float>(width));
  for (int matrix = 0; matrix < 3; ++matrix) {
    AppendParameter(device, parameters, Elements(width, width), seed, scale);
  }
  AppendParameter(device, parameters, width, seed, 0.0f);
}

Attention::Saved Attention::Forward(const float* hidden, const Memory& memory) const {
  const int rows = memory.rows, steps = memory.steps;
  Saved saved;
  saved.query = Times(device_, hidden, Weights(kQuery), rows, width_, width_);
  Tensor scores(device_, Elements(rows, steps));
  AttentionScores(saved.query.data(), memory.states.data(), scores.data(), rows, steps, width_);
  saved.weights = Tensor(device_, Elements(rows, steps));
  AttentionWeights(scores.data(), memory.lengths, saved.weights.data(), rows, steps);
  scores.Reset();
  saved.context = Tensor(device_, Elements(rows, width_));
  AttentionSum(saved.weights.data(), memory.states.data(), saved.context.data(), rows, steps, width_);
  const Tensor from_context = Times(device_, saved.context.data(), Weights(kContext), rows, width_, width_);
  const Tensor from_hidden = Times(device_, hidden, Weights(kState), rows, width_, width_);
  saved.out = Tensor(device_, Elements(rows, width_));
  TanhOfSum(from_context.data(), from_hidden.data(), Weights(kOutBias).value.data(), saved.out.data(), rows, width_);
  return saved;
}

Tensor Attention::Backward(const float* hidden, Saved saved, Tensor out_gradient, const Memory& memory,
                           Tensor& memory_gradient) const {
  const int rows = memory.rows, steps = memory.steps;
  Tensor sum_gradient(device_, Elements(rows, width_));
  TanhBackward(saved.out.data(), out_gradient.data(), sum_gradient.data(), sum_gradient.count());
  out_gradient.Reset();
  saved.out.Reset();
  AddWeightGradient(device_, Weights(kContext), saved.context.data(), sum_gradient.data(), rows, width_, width_);
  AddWeightGradient(device_, Weights(kState), hidden, sum_gradient.data(), rows, width_, width_);
  AddBiasGradient(device_, Weights(kOutBias), sum_gradient.data(), rows, width_);
  saved.context.Reset();
  const Tensor context_gradient = TimesTransposed(device_, sum_gradient, Weights(kContext), rows, width_, width_);
  const Tensor through_state = TimesTransposed(device_, sum_gradient, Weights(kState), rows, width_, width_);
  sum_gradient.Reset();

  Tensor weights_gradient(device_, Elements(rows, steps));
  AttentionScores(context_gradient.data(), memory.states.data(), weights_gradient.data(), rows, steps, width_);
  Tensor scores_gradient(device_, Elements(rows, steps));
  AttentionWeightsBackward(saved.weights.data(), weights_gradient.data(), scores_gradient.data(), rows, steps);
  weights_gradient.Reset();
  AttentionMemoryBackward(saved.weights.data(), context_gradient.data(), scores_gradient.data(), saved.query.data(),
                          memory_gradient.data(), rows, steps, width_);
  Tensor query_gradient(device_, Elements(rows, width_));
  AttentionSum(scores_gradient.data(), memory.states.data(), query_gradient.data(), rows, steps, width_);
  AddWeightGradient(device_, Weights(kQuery), hidden, query_gradient.data(), rows, width_, width_);
  const Tensor through_query = TimesTransposed(device_, query_gradient, Weights(kQuery), rows, width_, width_);
  return Sum(device_, through_state, through_query);
}

}  // namespace hotpack::train
