// The convolutional net on the host: its layers against references written differently, its gradients, its task, and
// its use of memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "bench/train/conv_layers.h"
#include "bench/train/conv_model.h"
#include "bench/train/kernels.h"
#include "bench/train/trainer.h"
#include "tests/bench/train_checks.h"
#include "tests/bench/train_devices.h"

namespace hotpack::train {
namespace {

using Floats = std::vector<float>;

constexpr int kRows = 3;
constexpr Convolution kConvolutions[] = {
    {{.side = 5, .channels = 2, .kernel = 3, .stride = 1}, 3},
    {{.side = 5, .channels = 2, .kernel = 3, .stride = 2}, 3},
    {{.side = 4, .channels = 3, .kernel = 3, .stride = 2}, 5},
    {{.side = 4, .channels = 3, .kernel = 1, .stride = 2}, 2},
    {{.side = 1, .channels = 4, .kernel = 3, .stride = 2}, 2},
    {{.side = 6, .channels = 1, .kernel = 5, .stride = 1}, 1},
};

Floats RandomFloats(int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
  Floats values(static_cast<size_t>(count));
  for (float& value : values) value = uniform(random);
  return values;
}

double Dot(const Floats& a, const Floats& b) {
  EXPECT_EQ(a.size(), b.size());
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

void ExpectNear(const Floats& a, const Floats& b, float tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], tolerance) << "element " << i;
}

// The definition: out[row, y, x, o] = sum over ky, kx, c of in[row, y · stride + ky − pad, …, c] · w[ky, kx, c, o].
Floats DirectConvolution(const Convolution& convolution, const Floats& weights, const Floats& input) {
  const auto& [side, channels, kernel, stride] = convolution.patches;
  const int pad = kernel / 2, out_side = (side + 2 * pad - kernel) / stride + 1;
  Floats output;
  for (int row = 0; row < kRows; ++row) {
    for (int position = 0; position < out_side * out_side; ++position) {
      for (int o = 0; o < convolution.out_channels; ++o) {
        double sum = 0;
        for (int tap = 0; tap < kernel * kernel; ++tap) {
          const int y = position / out_side * stride + tap / kernel - pad;
          const int x = position % out_side * stride + tap % kernel - pad;
          if (y < 0 || y >= side || x < 0 || x >= side) continue;
          for (int c = 0; c < channels; ++c) {
            const int pixel = ((row * side + y) * side + x) * channels + c;
            const int weight = (tap * channels + c) * convolution.out_channels + o;
            sum += static_cast<double>(input[static_cast<size_t>(pixel)]) *
                   static_cast<double>(weights[static_cast<size_t>(weight)]);
          }
        }
        output.push_back(static_cast<float>(sum));
      }
    }
  }
  return output;
}

TEST(ConvKernelTest, PatchesBackIsTheAdjointOfPatches) {
  for (const Convolution& convolution : kConvolutions) {
    const Patches& shape = convolution.patches;
    const Floats x = RandomFloats(kRows * shape.ImageSize(), 1);
    const Floats y = RandomFloats(static_cast<int64_t>(kRows) * shape.Positions() * shape.Columns(), 2);
    Floats patches(y.size()), images(x.size());
    Im2Col(x.data(), patches.data(), shape, kRows);
    Col2Im(y.data(), images.data(), shape, kRows);
    EXPECT_NEAR(Dot(patches, y), Dot(x, images), 1e-4) << "side " << shape.side << " stride " << shape.stride;
    EXPECT_GT(std::abs(Dot(patches, y)), 1e-2) << "zero would show nothing";
  }
}

TEST(ConvKernelTest, TallProductsAgreeWithPlainOnes) {
  for (const int m : {1, 3, 4, 6, 9}) {
    constexpr int kN = 5, kK = 7;
    const Floats a = RandomFloats(m * kK, 1), b = RandomFloats(kK * kN, 2);
    Floats plain(static_cast<size_t>(m) * kN), tall(plain.size()), transposed(a.size());
    MatMul(a.data(), b.data(), plain.data(), m, kN, kK);
    TallMatMul(a.data(), b.data(), tall.data(), m, kN, kK);
    ExpectNear(tall, plain, 1e-6f);
    Transpose(a.data(), transposed.data(), m, kK);
    Floats partial(3 * plain.size()), sum(plain.size());
    TallMatMulTransposedASliced(transposed.data(), b.data(), partial.data(), m, kN, kK, 3);
    SumSlices(partial.data(), sum.data(), 3, static_cast<int64_t>(sum.size()));
    ExpectNear(sum, plain, 1e-6f);
  }
}

TEST(ConvLayerTest, ConvolutionAgreesWithItsDefinition) {
  const auto device = MakeHostDevice();
  for (const Convolution& convolution : kConvolutions) {
    const Floats weights = RandomFloats(convolution.WeightCount(), 3);
    const Floats input = RandomFloats(kRows * convolution.patches.ImageSize(), 4);
    const Tensor output = convolution.Forward(*device, Tensor(*device, weights), Tensor(*device, input), kRows);
    ExpectNear(output.ToHost(), DirectConvolution(convolution, weights, input), 1e-5f);
  }
}

// A convolution is linear in its input and in its weights: each gradient is the adjoint of one of these maps.
TEST(ConvLayerTest, ConvolutionGradientsAreItsAdjoints) {
  const auto device = MakeHostDevice();
  for (const Convolution& convolution : kConvolutions) {
    const Floats w = RandomFloats(convolution.WeightCount(), 3), g = RandomFloats(convolution.OutputCount(kRows), 5);
    const Floats x = RandomFloats(kRows * convolution.patches.ImageSize(), 4);
    const double expected = Dot(DirectConvolution(convolution, w, x), g);
    const Tensor weights(*device, w), input(*device, x), gradient(*device, g);
    EXPECT_NEAR(Dot(convolution.WeightGradient(*device, input, gradient, kRows).ToHost(), w), expected, 1e-4);
    EXPECT_NEAR(Dot(convolution.InputGradient(*device, weights, gradient, kRows).ToHost(), x), expected, 1e-4);
  }
}

class BatchNormTest : public testing::Test {
 protected:
  static constexpr int kChannels = 3, kCount = 10;

  Floats Forward(BatchNorm& norm, const Floats& scale, const Floats& shift, const Floats& input,
                 Statistics statistics = Statistics::kBatch) {
    return norm.Forward(Tensor(*device_, scale), Tensor(*device_, shift), Tensor(*device_, input), statistics, nullptr)
        .ToHost();
  }

  // Mean and variance of one channel.
  static std::pair<double, double> Moments(const Floats& samples, int channel) {
    double sum = 0, squares = 0;
    for (int s = 0; s < kCount; ++s) {
      const auto value = static_cast<double>(samples[static_cast<size_t>(s * kChannels + channel)]);
      sum += value;
      squares += value * value;
    }
    const double mean = sum / kCount;
    return {mean, squares / kCount - mean * mean};
  }

  std::unique_ptr<Device> device_ = MakeHostDevice();
  const Floats scale_ = {0.5f, 1.0f, 2.0f}, shift_ = {3.0f, 0.0f, -1.0f};
  const Floats input_ = RandomFloats(kCount * kChannels, 6);
};

TEST_F(BatchNormTest, OutputsHaveTheMomentsAskedFor) {
  BatchNorm norm(*device_, kChannels);
  const Floats output = Forward(norm, scale_, shift_, input_);
  for (int c = 0; c < kChannels; ++c) {
    const auto [mean, variance] = Moments(output, c);
    const auto i = static_cast<size_t>(c);
    EXPECT_NEAR(mean, shift_[i], 1e-5);
    EXPECT_NEAR(std::sqrt(variance), scale_[i], 1e-3);
    const auto [in_mean, in_variance] = Moments(input_, c);
    EXPECT_NEAR(output[i], shift_[i] + scale_[i] * (input_[i] - in_mean) / std::sqrt(in_variance + 1e-5), 1e-5);
  }
}

TEST_F(BatchNormTest, RunningStatisticsFollowOnlyWhereTheyAreRecorded) {
  BatchNorm norm(*device_, kChannels);
  Forward(norm, scale_, shift_, input_, Statistics::kBatch);
  EXPECT_EQ(norm.running_mean().ToHost(), Floats(kChannels, 0.0f));
  EXPECT_EQ(norm.running_variance().ToHost(), Floats(kChannels, 1.0f));
  Forward(norm, scale_, shift_, input_, Statistics::kBatchAndRecord);
  for (int c = 0; c < kChannels; ++c) {
    const auto [mean, variance] = Moments(input_, c);
    EXPECT_NEAR(norm.running_mean().ToHost()[static_cast<size_t>(c)], 0.1 * mean, 1e-6);
    EXPECT_NEAR(norm.running_variance().ToHost()[static_cast<size_t>(c)], 0.9 + 0.1 * variance, 1e-6);
  }
  for (int i = 0; i < 200; ++i) Forward(norm, scale_, shift_, input_, Statistics::kBatchAndRecord);
  ExpectNear(Forward(norm, scale_, shift_, input_, Statistics::kRunning), Forward(norm, scale_, shift_, input_), 1e-4f);
}

TEST_F(BatchNormTest, GradientsAgreeWithDifferences) {
  BatchNorm norm(*device_, kChannels);
  const Floats g = RandomFloats(kCount * kChannels, 7);
  BatchNorm::Saved saved;
  const Tensor scale(*device_, scale_), shift(*device_, shift_), input(*device_, input_);
  norm.Forward(scale, shift, input, Statistics::kBatch, &saved);
  const BatchNorm::Gradients gradients = norm.Backward(scale, input, saved, Tensor(*device_, g));

  Floats values[] = {scale_, shift_, input_};
  const Floats analytic[] = {gradients.scale.ToHost(), gradients.shift.ToHost(), gradients.input.ToHost()};
  for (int which = 0; which < 3; ++which) {
    ASSERT_EQ(analytic[which].size(), values[which].size());
    for (size_t i = 0; i < values[which].size(); ++i) {
      constexpr float kStep = 5e-3f;
      const float value = values[which][i];
      values[which][i] = value + kStep;
      const double above = Dot(Forward(norm, values[0], values[1], values[2]), g);
      values[which][i] = value - kStep;
      const double below = Dot(Forward(norm, values[0], values[1], values[2]), g);
      values[which][i] = value;
      EXPECT_NEAR((above - below) / (2 * kStep), analytic[which][i], 2e-3) << "argument " << which << ", " << i;
    }
  }
}

TEST(ConvLayerTest, PoolingAveragesAndItsGradientIsTheAdjoint) {
  const auto device = MakeHostDevice();
  const Floats known = {1, 10, 3, 20, 5, 30, 7, 40};  // [2, 2, 2]
  EXPECT_EQ(AveragePool(*device, Tensor(*device, known), 2, 2, 2).ToHost(), (Floats{2, 15, 6, 35}));
  const Floats x = RandomFloats(2 * 5 * 3, 8), g = RandomFloats(2 * 3, 9);
  EXPECT_NEAR(Dot(AveragePool(*device, Tensor(*device, x), 2, 5, 3).ToHost(), g),
              Dot(x, AveragePoolBackward(*device, Tensor(*device, g), 2, 5, 3).ToHost()), 1e-5);
}

constexpr ConvShape kSmall = {.image = 8, .width = 4, .stages = 2, .blocks = 1, .classes = 4};

TrainOptions SmallTraining() {
  TrainOptions options;
  options.rows = 16;
  options.steps = 20;
  options.optimizer = {.kind = OptimizerKind::kSgd, .rate = 0.05f};
  return options;
}

Floats Losses(Device& device, const TrainOptions& options, uint64_t seed = 1) {
  ConvNet model(device, kSmall, seed);
  return Losses(device, model, options);
}

TEST(ConvNetTest, GradientsAgreeWithDifferencesOfTheLoss) {
  const auto device = MakeHostDevice();
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    ConvNet model(*device, kTinyConvShape, seed);
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    ExpectRightGradients(*device, model, kTinyConvRows);
  }
}

TEST(ConvNetTest, LearnsTheTask) {
  const auto device = MakeHostDevice();
  TrainOptions options = SmallTraining();
  options.steps = 200;
  options.evaluations = 8;
  ConvNet model(*device, kSmall, 1);
  const TrainResult result = Train(*device, model, options, [](int64_t, float) {});
  EXPECT_LT(result.last_loss, 0.3f * result.first_loss);
  EXPECT_GT(result.merit, 0.9);
}

// All classes have the same mean, zero. A linear function of the pixels could distinguish only their means.
TEST(ConvTaskTest, ClassMeansAreZeroAndTheirImagesAreNot) {
  constexpr int kImages = 4000;
  const GratingTask task(5, 4, 3);
  const Batch batch = task.MakeBatch(1, kImages);
  const size_t size = batch.features.size() / kImages;
  std::vector<std::vector<double>> sums(3, std::vector<double>(size));
  std::vector<double> squares(3), images(3);
  for (size_t row = 0; row < kImages; ++row) {
    const auto label = static_cast<size_t>(batch.labels[row]);
    ++images[label];
    for (size_t i = 0; i < size; ++i) {
      const auto value = static_cast<double>(batch.features[row * size + i]);
      sums[label][i] += value;
      squares[label] += value * value / static_cast<double>(size);
    }
  }
  for (size_t c = 0; c < 3; ++c) {
    EXPECT_GT(images[c], kImages / 4);
    EXPECT_GT(squares[c] / images[c], 0.2);
    for (const double sum : sums[c]) EXPECT_LT(std::abs(sum / images[c]), 0.1);  // 4 standard errors
  }
  EXPECT_EQ(batch.features, task.MakeBatch(1, kImages).features);
  EXPECT_NE(batch.features, task.MakeBatch(-1, kImages).features);
  EXPECT_NE(batch.features, GratingTask(6, 4, 3).MakeBatch(1, kImages).features);
}

TEST(ConvNetTest, EqualRunsGiveEqualBits) {
  const auto device = MakeHostDevice();
  SlowCopyDevice slow;
  TrainOptions options = SmallTraining();
  options.steps = 5;
  options.epochs = 2;
  options.accumulate = 2;
  options.last_rows = 7;
  options.evaluations = 1;
  const Floats first = Losses(*device, options);
  EXPECT_EQ(first, Losses(*device, options));
  EXPECT_EQ(first, Losses(slow, options));
  EXPECT_NE(first, Losses(*device, options, 2));
  EXPECT_EQ(slow.LiveBytes(), 0u);
}

// Norms use the statistics of a micro-batch: two equal ones add up to the gradient of one, bit for bit.
TEST(ConvNetTest, EqualMicroBatchesAddUp) {
  const auto device = MakeHostDevice();
  std::vector<Floats> gradients[2];
  for (int parts = 1; parts <= 2; ++parts) {
    ConvNet model(*device, kSmall, 1);
    for (int part = 0; part < parts; ++part) {
      model.Prefetch(1, 8);
      model.LossAndGradients(1.0f / static_cast<float>(parts));
    }
    for (Parameter& parameter : model.parameters()) gradients[parts - 1].push_back(parameter.gradient.ToHost());
  }
  EXPECT_EQ(gradients[0], gradients[1]);
}

TEST(ConvNetTest, OnlyTrainingMovesTheRunningStatistics) {
  const auto device = MakeHostDevice();
  ConvNet model(*device, kSmall, 2);
  const double fresh = model.Evaluate(-1, 256);
  for (int i = 0; i < 50; ++i) {
    model.Prefetch(1, 16);
    model.Loss();
  }
  EXPECT_EQ(model.Evaluate(-1, 256), fresh);
  for (int i = 0; i < 50; ++i) {
    model.Prefetch(1, 16);
    model.LossAndGradients(1.0f);
  }
  EXPECT_NE(model.Evaluate(-1, 256), fresh) << "the weights are the same, the running statistics are not";
}

TEST(ConvNetTest, StepsRepeatOneSequenceOfRequestsAndLeaveNothingBehind) {
  TrainOptions options = SmallTraining();
  options.steps = 6;
  ExpectRepeatedSteps(options, [](Device& device) { return std::make_unique<ConvNet>(device, kSmall, 1); });
}

class PeakDevice : public CountingDevice {
 public:
  void* Allocate(size_t bytes) override {
    void* pointer = CountingDevice::Allocate(bytes);
    peak = std::max(peak, LiveBytes());
    return pointer;
  }
  size_t peak = 0;
};

TEST(ConvNetTest, WithoutABackwardPassDeeperNetsNeedNoMoreActivations) {
  size_t peaks[2][2];  // [forward alone, with backward][blocks 1, 4], above the weights
  for (const int blocks : {1, 4}) {
    for (const bool backward : {false, true}) {
      PeakDevice device;
      ConvShape shape = kSmall;
      shape.blocks = blocks;
      ConvNet model(device, shape, 1);
      const size_t weights = device.LiveBytes();
      model.Prefetch(1, 32);
      if (backward) {
        model.LossAndGradients(1.0f);
      } else {
        model.Loss();
      }
      peaks[backward][blocks / 4] = device.peak - weights;
    }
  }
  EXPECT_EQ(peaks[0][0], peaks[0][1]);
  EXPECT_LT(peaks[1][0], peaks[1][1]);
}

}  // namespace
}  // namespace hotpack::train
