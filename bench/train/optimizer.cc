#include "bench/train/optimizer.h"

#include <cmath>
#include <stdexcept>
#include <utility>

#include "bench/train/kernels.h"

namespace hotpack::train {
namespace {

Tensor Zeros(Device& device, int64_t count) {
  Tensor tensor(device, count);
  Fill(tensor.data(), count, 0.0f);
  return tensor;
}

// Polyak 1964 as deep learning writes it: velocity = momentum · velocity + gradient; weights −= rate · velocity.
void SgdStep(Device& device, Parameter& parameter, const OptimizerOptions& options) {
  const int64_t count = parameter.value.count();
  const Tensor* direction = &parameter.gradient;
  if (options.momentum != 0.0f) {
    if (parameter.mean.empty()) parameter.mean = Zeros(device, count);
    Scale(parameter.mean.data(), parameter.mean.data(), count, options.momentum);
    AddInto(parameter.mean.data(), parameter.gradient.data(), count);
    direction = &parameter.mean;
  }
  Descend(parameter.value.data(), direction->data(), count, options.rate);
}

// Adam (Kingma, Ba 2015, algorithm 1); `step` counts from 1.
void AdamStep(Device& device, Parameter& parameter, const OptimizerOptions& options, int64_t step) {
  const int64_t count = parameter.value.count();
  if (parameter.mean.empty()) {
    parameter.mean = Zeros(device, count);
    parameter.variance = Zeros(device, count);
  }
  MovingAverage(parameter.mean.data(), parameter.gradient.data(), count, options.decay_mean);
  MovingAverageOfSquares(parameter.variance.data(), parameter.gradient.data(), count, options.decay_variance);

  const auto power = static_cast<double>(step);
  const auto mean_factor = static_cast<float>(1.0 / (1.0 - std::pow(options.decay_mean, power)));
  const auto variance_factor = static_cast<float>(1.0 / (1.0 - std::pow(options.decay_variance, power)));
  Tensor unbiased_mean(device, count);
  Scale(parameter.mean.data(), unbiased_mean.data(), count, mean_factor);
  Tensor unbiased_variance(device, count);
  Scale(parameter.variance.data(), unbiased_variance.data(), count, variance_factor);
  Tensor direction(device, count);
  AdamDirection(unbiased_mean.data(), unbiased_variance.data(), direction.data(), count, options.epsilon);
  unbiased_mean.Reset();
  unbiased_variance.Reset();
  Descend(parameter.value.data(), direction.data(), count, options.rate);
}

}  // namespace

void ZeroGradients(std::vector<Parameter>& parameters) {
  for (Parameter& parameter : parameters) parameter.gradient.Reset();
}

void AddGradient(Device& /*device*/, Parameter& parameter, Tensor gradient) {
  if (parameter.gradient.empty()) {
    parameter.gradient = std::move(gradient);
  } else {
    AddInto(parameter.gradient.data(), gradient.data(), gradient.count());
  }
}

void Optimizer::Step(std::vector<Parameter>& parameters) {
  ++steps_;
  for (Parameter& parameter : parameters) {
    if (parameter.gradient.empty()) throw std::logic_error("a parameter without a gradient");
    if (options_.kind == OptimizerKind::kSgd) {
      SgdStep(device_, parameter, options_);
    } else {
      AdamStep(device_, parameter, options_, steps_);
    }
  }
}

}  // namespace hotpack::train
