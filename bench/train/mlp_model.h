// A multi-layer perceptron that classifies, written as a framework would run it without an allocator of its own: each
// result is allocated when it is produced and released at its last use.
//
//   tensor                   allocated            released
//   weights, biases          before step 1        at the end
//   Adam's two moments       during step 1        at the end
//   gradients                in the backward pass by ZeroGradients() of the next step: carried over the step
//   inputs                   by Prefetch()        in the backward pass of their batch
//   layer inputs, sums       forward              in the layer's backward pass
//   everything else          when produced        a few calls later
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/train/classifier.h"
#include "bench/train/task.h"
#include "bench/train/tensor.h"
#include "bench/train/workload.h"

namespace hotpack::train {

struct MlpShape {
  int features = 0;  // columns of the input, ≥ 1
  int width = 0;     // columns of each hidden layer, ≥ 1
  int layers = 0;    // linear layers, ≥ 1; the last has `classes` columns
  int classes = 0;   // ≥ 2
};

class Mlp : public Workload {
 public:
  Mlp(Device& device, const MlpShape& shape, uint64_t seed);

  std::vector<Parameter>& parameters() override { return parameters_; }  // weights, biases, weights, biases, ...
  void Prefetch(int64_t number, int rows) override;
  Tensor LossAndGradients(float weight) override;
  Tensor Loss() override;
  double Evaluate(int64_t number, int rows) override;  // the share of rows whose largest logit is the label's
  std::string MeritName() const override { return "accuracy"; }

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

  Device& device_;
  MlpShape shape_;
  Task task_;
  std::vector<Parameter> parameters_;
  PrefetchedRows prefetched_;
};

}  // namespace hotpack::train
