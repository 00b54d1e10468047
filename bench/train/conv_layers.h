// The layers of the convolutional net: what they allocate, and when they release it.
#pragma once

#include <cstdint>

#include "bench/train/conv_kernels.h"
#include "bench/train/tensor.h"

namespace hotpack::train {

// Convolution without bias, with weights [kernel · kernel · channels, out_channels]. Each call copies its patches into
// its own workspace and releases it on return, as libraries do. Not thread-safe.
struct Convolution {
  Patches patches;
  int out_channels = 1;

  int64_t WeightCount() const { return static_cast<int64_t>(patches.Columns()) * out_channels; }
  int64_t OutputCount(int rows) const { return static_cast<int64_t>(rows) * patches.Positions() * out_channels; }

  Tensor Forward(Device& device, const Tensor& weights, const Tensor& input, int rows) const;
  Tensor WeightGradient(Device& device, const Tensor& input, const Tensor& output_gradient, int rows) const;
  Tensor InputGradient(Device& device, const Tensor& weights, const Tensor& output_gradient, int rows) const;
};

// The statistics that a batch norm uses. Batch statistics are of the rows of one call. Under gradient accumulation they
// are of the micro-batch alone, and the running ones move once per micro-batch.
enum class Statistics {
  kBatch,           // of the batch; the running ones do not change
  kBatchAndRecord,  // of the batch; the running ones follow them: training
  kRunning,         // those of the training: evaluation
};

// Batch norm of samples [count, channels] (Ioffe, Szegedy 2015). The running variance follows the batch's own variance,
// not its unbiased estimate. Not thread-safe.
class BatchNorm {
 public:
  struct Saved {
    Tensor mean, inverse_deviation;
  };
  struct Gradients {
    Tensor scale, shift, input;
  };

  BatchNorm(Device& device, int channels);

  // `saved`, if not null, receives the operands of Backward(). It must be null with Statistics::kRunning.
  Tensor Forward(const Tensor& scale, const Tensor& shift, const Tensor& input, Statistics statistics, Saved* saved);
  Gradients Backward(const Tensor& scale, const Tensor& input, const Saved& saved, const Tensor& output_gradient) const;

  int channels() const { return channels_; }
  const Tensor& running_mean() const { return running_mean_; }
  const Tensor& running_variance() const { return running_variance_; }

 private:
  Saved BatchStatistics(const Tensor& input, bool record);

  Device& device_;
  int channels_;
  Tensor running_mean_, running_variance_;  // retained; written in place
};

// [rows, positions, channels] to the mean over the positions, [rows, channels]; and back.
Tensor AveragePool(Device& device, const Tensor& input, int rows, int positions, int channels);
Tensor AveragePoolBackward(Device& device, const Tensor& output_gradient, int rows, int positions, int channels);

Tensor Silu(Device& device, const Tensor& input);
Tensor SiluBackward(Device& device, const Tensor& input, const Tensor& output_gradient);
Tensor Add(Device& device, const Tensor& a, const Tensor& b);

}  // namespace hotpack::train
