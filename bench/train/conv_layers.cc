#include "bench/train/conv_layers.h"

#include <algorithm>

#include "bench/train/kernels.h"

namespace hotpack::train {
namespace {

constexpr float kEpsilon = 1e-5f;  // added to a variance
constexpr float kDecay = 0.9f;     // of the running statistics

// Parts of a long sum, one thread each. There are enough threads to fill a GPU, and the count is a pure function of the
// shape.
constexpr int64_t kSliceThreads = 1 << 20;
constexpr int64_t kMaxSlices = 256;

int Slices(int64_t samples, int64_t results) {
  const int64_t wanted = std::clamp<int64_t>(kSliceThreads / results, 1, kMaxSlices);
  return static_cast<int>(std::min(wanted, samples));
}

Tensor TakePatches(Device& device, const Patches& patches, const Tensor& input, int rows) {
  Tensor taken(device, static_cast<int64_t>(rows) * patches.Positions() * patches.Columns());
  Im2Col(input.data(), taken.data(), patches, rows);
  return taken;
}

}  // namespace

Tensor Convolution::Forward(Device& device, const Tensor& weights, const Tensor& input, int rows) const {
  const Tensor workspace = TakePatches(device, patches, input, rows);
  Tensor output(device, OutputCount(rows));
  TallMatMul(workspace.data(), weights.data(), output.data(), static_cast<int64_t>(rows) * patches.Positions(),
             out_channels, patches.Columns());
  return output;
}

Tensor Convolution::WeightGradient(Device& device, const Tensor& input, const Tensor& output_gradient, int rows) const {
  const int64_t samples = static_cast<int64_t>(rows) * patches.Positions();
  const int slices = Slices(samples, WeightCount());
  Tensor workspace = TakePatches(device, patches, input, rows);
  Tensor partial(device, slices * WeightCount());
  TallMatMulTransposedASliced(workspace.data(), output_gradient.data(), partial.data(), patches.Columns(), out_channels,
                              samples, slices);
  workspace.Reset();
  Tensor gradient(device, WeightCount());
  SumSlices(partial.data(), gradient.data(), slices, WeightCount());
  return gradient;
}

Tensor Convolution::InputGradient(Device& device, const Tensor& weights, const Tensor& output_gradient,
                                  int rows) const {
  const int64_t samples = static_cast<int64_t>(rows) * patches.Positions();
  Tensor workspace(device, samples * patches.Columns());
  {
    Tensor transposed(device, WeightCount());  // so that neighbouring threads read neighbouring weights
    Transpose(weights.data(), transposed.data(), patches.Columns(), out_channels);
    TallMatMul(output_gradient.data(), transposed.data(), workspace.data(), samples, patches.Columns(), out_channels);
  }
  Tensor gradient(device, rows * patches.ImageSize());
  Col2Im(workspace.data(), gradient.data(), patches, rows);
  return gradient;
}

BatchNorm::BatchNorm(Device& device, int channels)
    : device_(device), channels_(channels), running_mean_(device, channels), running_variance_(device, channels) {
  Fill(running_mean_.data(), channels, 0.0f);
  Fill(running_variance_.data(), channels, 1.0f);
}

BatchNorm::Saved BatchNorm::BatchStatistics(const Tensor& input, bool record) {
  const int64_t count = input.count() / channels_;
  const int slices = Slices(count, channels_);
  const auto mean_of = [&](const Tensor& partial) {
    Tensor mean(device_, channels_);
    SumSlices(partial.data(), mean.data(), slices, channels_);
    Scale(mean.data(), mean.data(), channels_, 1.0f / static_cast<float>(count));
    return mean;
  };
  Tensor partial(device_, static_cast<int64_t>(slices) * channels_);
  ChannelSums(input.data(), partial.data(), count, channels_, slices);
  Saved saved;
  saved.mean = mean_of(partial);
  ChannelSquares(input.data(), saved.mean.data(), partial.data(), count, channels_, slices);
  const Tensor variance = mean_of(partial);
  partial.Reset();
  if (record) {
    MovingAverage(running_mean_.data(), saved.mean.data(), channels_, kDecay);
    MovingAverage(running_variance_.data(), variance.data(), channels_, kDecay);
  }
  saved.inverse_deviation = Tensor(device_, channels_);
  InverseDeviation(variance.data(), saved.inverse_deviation.data(), channels_, kEpsilon);
  return saved;
}

Tensor BatchNorm::Forward(const Tensor& scale, const Tensor& shift, const Tensor& input, Statistics statistics,
                          Saved* saved) {
  Tensor output;
  const auto normalize = [&](const Tensor& mean, const Tensor& inverse_deviation) {
    output = Tensor(device_, input.count());
    Normalize(input.data(), mean.data(), inverse_deviation.data(), scale.data(), shift.data(), output.data(),
              input.count() / channels_, channels_);
  };
  if (statistics == Statistics::kRunning) {
    Tensor inverse_deviation(device_, channels_);
    InverseDeviation(running_variance_.data(), inverse_deviation.data(), channels_, kEpsilon);
    normalize(running_mean_, inverse_deviation);
    return output;
  }
  Saved batch = BatchStatistics(input, statistics == Statistics::kBatchAndRecord);
  normalize(batch.mean, batch.inverse_deviation);
  if (saved != nullptr) *saved = std::move(batch);
  return output;
}

BatchNorm::Gradients BatchNorm::Backward(const Tensor& scale, const Tensor& input, const Saved& saved,
                                         const Tensor& output_gradient) const {
  const int64_t count = input.count() / channels_;
  const int slices = Slices(count, channels_);
  Gradients gradients;
  Tensor partial(device_, static_cast<int64_t>(slices) * channels_);
  ChannelProducts(input.data(), saved.mean.data(), saved.inverse_deviation.data(), output_gradient.data(),
                  partial.data(), count, channels_, slices);
  gradients.scale = Tensor(device_, channels_);
  SumSlices(partial.data(), gradients.scale.data(), slices, channels_);
  ChannelSums(output_gradient.data(), partial.data(), count, channels_, slices);
  gradients.shift = Tensor(device_, channels_);
  SumSlices(partial.data(), gradients.shift.data(), slices, channels_);
  partial.Reset();
  gradients.input = Tensor(device_, input.count());
  NormalizeBackward(input.data(), saved.mean.data(), saved.inverse_deviation.data(), scale.data(),
                    gradients.scale.data(), gradients.shift.data(), output_gradient.data(), gradients.input.data(),
                    count, channels_);
  return gradients;
}

Tensor AveragePool(Device& device, const Tensor& input, int rows, int positions, int channels) {
  Tensor output(device, static_cast<int64_t>(rows) * channels);
  AveragePool(input.data(), output.data(), rows, positions, channels);
  return output;
}

Tensor AveragePoolBackward(Device& device, const Tensor& output_gradient, int rows, int positions, int channels) {
  Tensor gradient(device, static_cast<int64_t>(rows) * positions * channels);
  AveragePoolBackward(output_gradient.data(), gradient.data(), rows, positions, channels);
  return gradient;
}

Tensor Silu(Device& device, const Tensor& input) {
  Tensor output(device, input.count());
  Silu(input.data(), output.data(), input.count());
  return output;
}

Tensor SiluBackward(Device& device, const Tensor& input, const Tensor& output_gradient) {
  Tensor gradient(device, input.count());
  SiluBackward(input.data(), output_gradient.data(), gradient.data(), input.count());
  return gradient;
}

Tensor Add(Device& device, const Tensor& a, const Tensor& b) {
  Tensor sum(device, a.count());
  AddElements(a.data(), b.data(), sum.data(), a.count());
  return sum;
}

}  // namespace hotpack::train
