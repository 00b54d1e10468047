#include "bench/train/mlp_model.h"

#include <algorithm>
#include <utility>

#include "bench/train/kernels.h"

namespace hotpack::train {
namespace {

constexpr int kSlices = 4;  // parts of the batch in a weight gradient's workspace

int Slices(int rows) { return std::min(kSlices, rows); }

}  // namespace

Mlp::Mlp(Device& device, const MlpShape& shape, uint64_t seed)
    : Classifier(device, shape.classes), shape_(shape), task_(seed, shape.features, shape.classes) {
  parameters_.reserve(static_cast<size_t>(shape.layers) * 2);
  for (int layer = 0; layer < shape.layers; ++layer) {
    const uint64_t layer_seed = SeedOf(seed, static_cast<size_t>(layer));
    parameters_.emplace_back().value = RandomWeights(device_, InputColumns(layer), OutputColumns(layer), layer_seed);
    parameters_.emplace_back().value = Filled(device_, OutputColumns(layer), 0.0f);
  }
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

// Computes from the gradient of the layer's sum the gradients of its parameters and of its input (empty for layer 0).
Tensor Mlp::LayerBackward(int layer, Tensor sum_gradient, Tensor input, int rows) {
  const int in = InputColumns(layer), out = OutputColumns(layer);
  const int64_t count = static_cast<int64_t>(in) * out;
  {
    Tensor workspace(device_, count * Slices(rows));
    MatMulTransposedASliced(input.data(), sum_gradient.data(), workspace.data(), in, out, rows, Slices(rows));
    Tensor gradient(device_, count);
    SumSlices(workspace.data(), gradient.data(), Slices(rows), count);
    workspace.Reset();
    AddGradient(device_, Weights(layer), std::move(gradient));
  }
  Tensor bias_gradient(device_, out);
  SumSlices(sum_gradient.data(), bias_gradient.data(), rows, out);
  AddGradient(device_, Biases(layer), std::move(bias_gradient));
  input.Reset();
  if (layer == 0) return {};
  Tensor input_gradient(device_, static_cast<int64_t>(rows) * in);
  MatMulTransposedB(sum_gradient.data(), Weights(layer).value.data(), input_gradient.data(), rows, in, out);
  return input_gradient;
}

void Mlp::Backward(std::vector<Saved> saved, Tensor gradient, int rows) {
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
}

Tensor Mlp::LossAndGradients(float weight) {
  std::vector<Saved> saved;
  return LossAndGradientsBy(
      weight, [&](Tensor features, int rows) { return Forward(std::move(features), rows, &saved); },
      [&](Tensor gradient, int rows) { Backward(std::move(saved), std::move(gradient), rows); });
}

}  // namespace hotpack::train
