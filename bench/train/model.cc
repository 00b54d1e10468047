#include "bench/train/model.h"

#include <algorithm>
#include <cmath>

#include "bench/train/kernels.h"

namespace hotpack::train {
namespace {

constexpr int kSlices = 4;  // parts of the batch in a weight gradient's workspace

int Slices(int rows) { return std::min(kSlices, rows); }

}  // namespace

Mlp::Mlp(Device& device, const ModelShape& shape, uint64_t seed) : device_(device), shape_(shape) {
  parameters_.reserve(static_cast<size_t>(shape.layers) * 2);
  for (int layer = 0; layer < shape.layers; ++layer) {
    const int64_t in = InputColumns(layer), out = OutputColumns(layer);
    Parameter& weights = parameters_.emplace_back();
    weights.value = Tensor(device_, in * out);
    // Variance 2 / inputs keeps the activations' scale (He et al. 2015); a uniform of half-width s has variance s² / 3.
    const float scale = std::sqrt(6.0f / static_cast<float>(in));
    FillUniform(weights.value.data(), in * out, seed + static_cast<uint64_t>(layer) * 0x51ed2701u, scale);
    Parameter& biases = parameters_.emplace_back();
    biases.value = Tensor(device_, out);
    Fill(biases.value.data(), out, 0.0f);
  }
}

int64_t Mlp::ParameterCount() const {
  int64_t count = 0;
  for (const Parameter& parameter : parameters_) count += parameter.value.count();
  return count;
}

void Mlp::ZeroGradients() {
  for (Parameter& parameter : parameters_) parameter.gradient.Reset();
}

Tensor Mlp::Forward(Tensor input, int rows, std::vector<Saved>* saved) {
  for (int layer = 0; layer < shape_.layers; ++layer) {
    const int in = InputColumns(layer), out = OutputColumns(layer);
    const int64_t count = static_cast<int64_t>(rows) * out;
    Tensor product(device_, count);
    MatMul(input.data(), Weights(layer).value.data(), product.data(), rows, out, in);
    Tensor sum(device_, count);
    AddBias(product.data(), Biases(layer).value.data(), sum.data(), rows, out);
    product.Reset();
    Saved* keep = saved != nullptr ? &saved->emplace_back() : nullptr;
    if (keep != nullptr) keep->input = std::move(input);
    if (layer + 1 == shape_.layers) return sum;
    input = Tensor(device_, count);
    Silu(sum.data(), input.data(), count);
    if (keep != nullptr) keep->sum = std::move(sum);
  }
  return input;  // not reached: there is at least one layer
}

// From the gradient of the layer's sum to its parameters' gradients and the gradient of its input (empty for layer 0).
Tensor Mlp::LayerBackward(int layer, Tensor sum_gradient, Tensor input, int rows) {
  const int in = InputColumns(layer), out = OutputColumns(layer);
  const int64_t count = static_cast<int64_t>(in) * out;
  {
    Tensor workspace(device_, count * Slices(rows));
    MatMulTransposedASliced(input.data(), sum_gradient.data(), workspace.data(), in, out, rows, Slices(rows));
    Weights(layer).gradient = Tensor(device_, count);
    SumSlices(workspace.data(), Weights(layer).gradient.data(), Slices(rows), count);
  }
  Biases(layer).gradient = Tensor(device_, out);
  SumSlices(sum_gradient.data(), Biases(layer).gradient.data(), rows, out);
  input.Reset();
  if (layer == 0) return {};
  Tensor input_gradient(device_, static_cast<int64_t>(rows) * in);
  MatMulTransposedB(sum_gradient.data(), Weights(layer).value.data(), input_gradient.data(), rows, in, out);
  return input_gradient;
}

Tensor Mlp::LossAndGradients(Tensor input, const Labels& labels, int rows) {
  std::vector<Saved> saved;
  Tensor logits = Forward(std::move(input), rows, &saved);
  Tensor probabilities(device_, logits.count());
  Tensor losses(device_, rows);
  SoftmaxLoss(logits.data(), labels.data(), probabilities.data(), losses.data(), rows, shape_.classes);
  logits.Reset();
  Tensor loss(device_, 1);
  Mean(losses.data(), loss.data(), rows);
  losses.Reset();

  Tensor gradient(device_, probabilities.count());
  SoftmaxLossBackward(probabilities.data(), labels.data(), gradient.data(), rows, shape_.classes);
  probabilities.Reset();
  for (int layer = shape_.layers - 1; layer >= 0; --layer) {
    Saved& keep = saved[static_cast<size_t>(layer)];
    if (!keep.sum.empty()) {
      Tensor sum_gradient(device_, keep.sum.count());
      SiluBackward(keep.sum.data(), gradient.data(), sum_gradient.data(), keep.sum.count());
      keep.sum.Reset();
      gradient = std::move(sum_gradient);
    }
    gradient = LayerBackward(layer, std::move(gradient), std::move(keep.input), rows);
  }
  return loss;
}

Tensor Mlp::Loss(Tensor input, const Labels& labels, int rows) {
  Tensor logits = Forward(std::move(input), rows, nullptr);
  Tensor probabilities(device_, logits.count());
  Tensor losses(device_, rows);
  SoftmaxLoss(logits.data(), labels.data(), probabilities.data(), losses.data(), rows, shape_.classes);
  Tensor loss(device_, 1);
  Mean(losses.data(), loss.data(), rows);
  return loss;
}

Tensor Mlp::CorrectRows(Tensor input, const Labels& labels, int rows) {
  const Tensor logits = Forward(std::move(input), rows, nullptr);
  Tensor correct(device_, rows);
  Correct(logits.data(), labels.data(), correct.data(), rows, shape_.classes);
  return correct;
}

// Adam (Kingma, Ba 2015, algorithm 1), one operation at a time as an eager framework does it.
void Mlp::UpdateParameter(Parameter& parameter, const AdamOptions& options) {
  const int64_t count = parameter.value.count();
  if (parameter.mean.empty()) {
    parameter.mean = Tensor(device_, count);
    Fill(parameter.mean.data(), count, 0.0f);
    parameter.variance = Tensor(device_, count);
    Fill(parameter.variance.data(), count, 0.0f);
  }
  MovingAverage(parameter.mean.data(), parameter.gradient.data(), count, options.decay_mean);
  MovingAverageOfSquares(parameter.variance.data(), parameter.gradient.data(), count, options.decay_variance);

  const auto step = static_cast<double>(steps_);
  const auto mean_factor = static_cast<float>(1.0 / (1.0 - std::pow(options.decay_mean, step)));
  const auto variance_factor = static_cast<float>(1.0 / (1.0 - std::pow(options.decay_variance, step)));
  Tensor unbiased_mean(device_, count);
  Scale(parameter.mean.data(), unbiased_mean.data(), count, mean_factor);
  Tensor unbiased_variance(device_, count);
  Scale(parameter.variance.data(), unbiased_variance.data(), count, variance_factor);
  Tensor direction(device_, count);
  AdamDirection(unbiased_mean.data(), unbiased_variance.data(), direction.data(), count, options.epsilon);
  unbiased_mean.Reset();
  unbiased_variance.Reset();
  Descend(parameter.value.data(), direction.data(), count, options.rate);
}

void Mlp::AdamStep(const AdamOptions& options) {
  ++steps_;
  for (Parameter& parameter : parameters_) UpdateParameter(parameter, options);
}

}  // namespace hotpack::train
