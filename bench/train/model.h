// A multi-layer perceptron trained with Adam, written as a framework would run it without an allocator of its own:
// each result is allocated when it is produced and released at its last use.
//
//   tensor                   allocated            released
//   weights, biases          before step 1        at the end
//   Adam's two moments       during step 1        at the end
//   gradients                in the backward pass by ZeroGradients() of the next step: carried over the step
//   layer inputs, sums       forward              in the layer's backward pass
//   everything else          when produced        a few calls later
#pragma once

#include <cstdint>
#include <vector>

#include "bench/train/tensor.h"

namespace hotpack::train {

struct ModelShape {
  int features = 0;  // columns of the input, ≥ 1
  int width = 0;     // columns of each hidden layer, ≥ 1
  int layers = 0;    // linear layers, ≥ 1; the last has `classes` columns
  int classes = 0;   // ≥ 2
};

struct AdamOptions {
  float rate = 1e-3f;
  float decay_mean = 0.9f;
  float decay_variance = 0.999f;
  float epsilon = 1e-8f;
};

// Weights or biases, with what the optimizer keeps for them.
struct Parameter {
  Tensor value;
  Tensor gradient;  // empty between ZeroGradients() and the backward pass
  Tensor mean;      // Adam's moments: empty before the first step
  Tensor variance;
};

// Not thread-safe. Functions throw what Device and the kernels throw.
class Mlp {
 public:
  Mlp(Device& device, const ModelShape& shape, uint64_t seed);

  void ZeroGradients();
  // Forward and backward: the mean loss of the rows, as one element in device memory; gradients are set.
  Tensor LossAndGradients(Tensor input, const Labels& labels, int rows);
  // Forward alone.
  Tensor Loss(Tensor input, const Labels& labels, int rows);
  Tensor CorrectRows(Tensor input, const Labels& labels, int rows);  // one 0 or 1 a row
  void AdamStep(const AdamOptions& options);

  std::vector<Parameter>& parameters() { return parameters_; }  // weights, biases, weights, biases, ...
  int64_t ParameterCount() const;

 private:
  struct Saved {
    Tensor input;  // of the linear layer
    Tensor sum;    // with bias, before the activation; empty in the last layer
  };

  int InputColumns(int layer) const { return layer == 0 ? shape_.features : shape_.width; }
  int OutputColumns(int layer) const { return layer + 1 == shape_.layers ? shape_.classes : shape_.width; }
  Parameter& Weights(int layer) { return parameters_[static_cast<size_t>(layer) * 2]; }
  Parameter& Biases(int layer) { return parameters_[static_cast<size_t>(layer) * 2 + 1]; }

  Tensor Forward(Tensor input, int rows, std::vector<Saved>* saved);
  Tensor LayerBackward(int layer, Tensor sum_gradient, Tensor input, int rows);
  void UpdateParameter(Parameter& parameter, const AdamOptions& options);

  Device& device_;
  ModelShape shape_;
  std::vector<Parameter> parameters_;
  int64_t steps_ = 0;
};

}  // namespace hotpack::train
