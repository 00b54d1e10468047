// The layers of the sequence-to-sequence model: an LSTM stack that runs one time step per call, and attention. Each
// step allocates its own tensors, as an eager framework does, and releases them at their last use.
//
// Parameters are appended to the model's vector when a layer is made. Not thread-safe. Functions throw what Device and
// the kernels throw.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/train/optimizer.h"
#include "bench/train/tensor.h"

namespace hotpack::train {

// Appends a parameter of `count` elements, uniform in [-scale, scale), and returns its index.
size_t AppendParameter(Device& device, std::vector<Parameter>& parameters, int64_t count, uint64_t seed, float scale);
// weights += inputᵀ · gradient, with input [rows, in] and gradient [rows, out]
void AddWeightGradient(Device& device, Parameter& weights, const float* input, const float* gradient, int rows, int in,
                       int out);
// bias += sum of the gradient's rows
void AddBiasGradient(Device& device, Parameter& bias, const float* gradient, int rows, int columns);

// The results of one layer at one time step, [row, width] each.
struct LstmStep {
  Tensor gates;  // [row, 4 · width]; empty where no backward pass follows
  Tensor cell;
  Tensor hidden;
};
using StackStep = std::vector<LstmStep>;  // by layer, the lowest first

// The gradients that the backward pass carries from a time step to the one before it, by layer.
struct CarriedGradients {
  std::vector<Tensor> hidden;
  std::vector<Tensor> cell;
};

// Rows that have ended (lengths, seq2seq_kernels.h) keep their state. If `lengths` is null, no row ends.
class LstmStack {
 public:
  // Input and hidden state are both `width` columns wide. Per layer: input weights, hidden weights, biases.
  LstmStack(Device& device, std::vector<Parameter>& parameters, int layers, int width, uint64_t seed);

  StackStep Start(int rows) const;                 // the state before the first step: zeros
  CarriedGradients StartBackward(int rows) const;  // of the state after the last step: zeros
  StackStep Step(const float* input, const StackStep& previous, const int32_t* lengths, int step, int rows,
                 bool training) const;
  // The backward pass of Step(). `now` is its result, and `top_gradient` the gradient of its top hidden state from
  // outside the stack. Adds the parameters' gradients, turns `carried` into the gradients of `previous`, and returns
  // that of `input`.
  Tensor StepBackward(const float* input, const StackStep& previous, StackStep now, Tensor top_gradient,
                      const int32_t* lengths, int step, int rows, CarriedGradients& carried) const;

 private:
  Parameter& Weights(size_t layer, size_t kind) const { return parameters_[first_ + 3 * layer + kind]; }
  Tensor LayerBackward(size_t layer, const float* input, const LstmStep& previous, LstmStep& now, Tensor from_above,
                       const int32_t* lengths, int step, int rows, CarriedGradients& carried) const;

  Device& device_;
  std::vector<Parameter>& parameters_;
  size_t first_;
  size_t layers_;
  int width_;
};

// The states that attention reads: the encoder's top states.
struct Memory {
  Tensor states;                     // [step, row, width]
  const int32_t* lengths = nullptr;  // each row's steps, 1 .. steps, in device memory
  int rows = 0;
  int steps = 0;
};

// Luong et al. 2015, "general" score: query = hidden · W_q; weights = softmax(query · states); context = weights ·
// states; out = tanh(context · W_c + hidden · W_h + b).
class Attention {
 public:
  struct Saved {
    Tensor query;
    Tensor weights;  // [row, step]
    Tensor context;
    Tensor out;
  };

  Attention(Device& device, std::vector<Parameter>& parameters, int width, uint64_t seed);

  Saved Forward(const float* hidden, const Memory& memory) const;
  // Adds the gradients of the parameters and of the memory. Returns the gradient of `hidden`.
  Tensor Backward(const float* hidden, Saved saved, Tensor out_gradient, const Memory& memory,
                  Tensor& memory_gradient) const;

 private:
  Parameter& Weights(size_t kind) const { return parameters_[first_ + kind]; }

  Device& device_;
  std::vector<Parameter>& parameters_;
  size_t first_;
  int width_;
};

}  // namespace hotpack::train
