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
#include <utility>
#include <vector>

#include "bench/train/classifier.h"
#include "bench/train/task.h"
#include "bench/train/tensor.h"

namespace hotpack::train {

struct MlpShape {
  int features = 0;  // columns of the input, ≥ 1
  int width = 0;     // columns of each hidden layer, ≥ 1
  int layers = 0;    // linear layers, ≥ 1; the last has `classes` columns
  int classes = 0;   // ≥ 2
};

class Mlp : public Classifier {
 public:
  Mlp(Device& device, const MlpShape& shape, uint64_t seed);

  // Parameters: weights, biases, weights, biases, ...
  Tensor LossAndGradients(float weight) override;

 private:
  struct Saved {
    Tensor input;  // of the linear layer
    Tensor sum;    // with bias, before the activation; empty in the last layer
  };

  Batch MakeBatch(int64_t number, int rows) const override { return task_.MakeBatch(number, rows); }
  Tensor Logits(Tensor features, int rows, Purpose) override { return Forward(std::move(features), rows, nullptr); }

  int InputColumns(int layer) const { return layer == 0 ? shape_.features : shape_.width; }
  int OutputColumns(int layer) const { return layer + 1 == shape_.layers ? shape_.classes : shape_.width; }
  Parameter& Weights(int layer) { return parameters_[static_cast<size_t>(layer) * 2]; }
  Parameter& Biases(int layer) { return parameters_[static_cast<size_t>(layer) * 2 + 1]; }

  Tensor Forward(Tensor input, int rows, std::vector<Saved>* saved);
  Tensor LayerBackward(int layer, Tensor sum_gradient, Tensor input, int rows);
  void Backward(std::vector<Saved> saved, Tensor gradient, int rows);

  MlpShape shape_;
  Task task_;
};

}  // namespace hotpack::train
