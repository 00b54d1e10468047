// Updates the weights by SGD with momentum or Adam, one operation at a time as an eager framework does.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/train/tensor.h"

namespace hotpack::train {

// Weights or biases, and the optimizer's state for them.
struct Parameter {
  Tensor value;
  Tensor gradient;  // empty between ZeroGradients() and the backward pass
  Tensor mean;      // momentum, or Adam's first moment: empty before the first step
  Tensor variance;  // Adam's second moment: empty before the first step
};

enum class OptimizerKind { kSgd, kAdam };

struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::kAdam;
  float rate = 1e-3f;
  float momentum = 0.9f;  // SGD
  float decay_mean = 0.9f;
  float decay_variance = 0.999f;
  float epsilon = 1e-8f;
};

// Releases all gradients.
void ZeroGradients(std::vector<Parameter>& parameters);

// Takes over the gradient, or adds it to the gradient of an earlier micro-batch and releases it.
void AddGradient(Device& device, Parameter& parameter, Tensor gradient);

// One optimizer. Not thread-safe.
class Optimizer {
 public:
  Optimizer(Device& device, const OptimizerOptions& options) : device_(device), options_(options) {}
  void Step(std::vector<Parameter>& parameters);

 private:
  Device& device_;
  OptimizerOptions options_;
  int64_t steps_ = 0;
};

}  // namespace hotpack::train
