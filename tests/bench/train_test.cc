// The training program on the host: its arithmetic is right, repeatable, and gives memory back as documented.
#include "bench/train/trainer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bench/train/kernels.h"

namespace hotpack::train {
namespace {

// Counts what goes through a device; fails the test on a double release.
class CountingDevice : public Device {
 public:
  void* Allocate(size_t bytes) override {
    void* pointer = host_->Allocate(bytes);
    live_[pointer] = bytes;
    live_bytes_ += bytes;
    requests_.push_back(bytes);
    return pointer;
  }
  void Release(void* pointer) noexcept override {
    const auto found = live_.find(pointer);
    if (found == live_.end()) {
      ADD_FAILURE() << "released what was not live";
      return;
    }
    live_bytes_ -= found->second;
    live_.erase(found);
    host_->Release(pointer);
  }
  void CopyIn(void* device, const void* host, size_t bytes) override { host_->CopyIn(device, host, bytes); }
  void CopyOut(void* host, const void* device, size_t bytes) override { host_->CopyOut(host, device, bytes); }
  std::string Name() const override { return "counting"; }

  size_t LiveBytes() const { return live_bytes_; }
  std::vector<size_t> TakeRequests() { return std::exchange(requests_, {}); }

 private:
  std::unique_ptr<Device> host_ = MakeHostDevice();
  std::map<void*, size_t> live_;
  size_t live_bytes_ = 0;
  std::vector<size_t> requests_;
};

TrainOptions SmallTraining() {
  TrainOptions options;
  options.shape = {.features = 12, .width = 32, .layers = 3, .classes = 4};
  options.batch = 32;
  options.steps = 80;
  return options;
}

std::vector<float> Losses(Device& device, const TrainOptions& options) {
  std::vector<float> losses;
  Train(device, options, [&](int, float loss) { losses.push_back(loss); });
  return losses;
}

TEST(TrainTest, GradientsAgreeWithDifferencesOfTheLoss) {
  const auto device = MakeHostDevice();
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    EXPECT_LT(LargestGradientError(*device, seed), kGradientTolerance) << "seed " << seed;
  }
}

TEST(TrainTest, LearnsTheTask) {
  const auto device = MakeHostDevice();
  TrainOptions options = SmallTraining();
  options.steps = 300;
  options.evaluate_every = 300;
  const TrainResult result = Train(*device, options, [](int, float) {});
  EXPECT_LT(result.last_loss, 0.5f * result.first_loss);
  EXPECT_GT(result.accuracy, 0.9);
}

TEST(TrainTest, EqualRunsGiveEqualBits) {
  const auto device = MakeHostDevice();
  const std::vector<float> first = Losses(*device, SmallTraining());
  EXPECT_EQ(first, Losses(*device, SmallTraining()));
  TrainOptions other = SmallTraining();
  other.seed = 2;
  EXPECT_NE(first, Losses(*device, other));
}

TEST(TrainTest, StepsRepeatOneSequenceOfRequestsAndLeaveNothingBehind) {
  CountingDevice device;
  TrainOptions options = SmallTraining();
  options.steps = 6;
  std::vector<std::vector<size_t>> requests;
  std::vector<size_t> live;
  Train(device, options, [&](int, float) {
    requests.push_back(device.TakeRequests());
    live.push_back(device.LiveBytes());
  });
  for (size_t step = 2; step < requests.size(); ++step) {
    EXPECT_EQ(requests[step], requests[1]) << "step " << step + 1;
    EXPECT_EQ(live[step], live[1]);
  }
  EXPECT_GT(requests[0].size(), requests[1].size()) << "weights and optimizer state belong to the first step";
  EXPECT_EQ(device.LiveBytes(), 0u);
}

TEST(TrainTest, GradientsAreCarriedIntoTheNextStep) {
  CountingDevice device;
  const ModelShape shape = {.features = 4, .width = 8, .layers = 2, .classes = 3};
  Mlp model(device, shape, 1);
  const size_t weights = device.LiveBytes();
  EXPECT_EQ(weights, static_cast<size_t>(model.ParameterCount()) * sizeof(float));
  const Batch batch = Task(1, shape.features, shape.classes).MakeBatch(1, 8);
  {
    const Labels labels(device, batch.labels);
    model.LossAndGradients(Tensor(device, batch.features), labels, 8);
  }
  EXPECT_EQ(device.LiveBytes(), 2 * weights);
  model.AdamStep({});
  EXPECT_EQ(device.LiveBytes(), 4 * weights);
  model.ZeroGradients();
  EXPECT_EQ(device.LiveBytes(), 3 * weights);
}

// One row, known by hand: after one step Adam moves each weight by rate · sign(gradient), whatever the gradient's size.
TEST(TrainTest, FirstAdamStepMovesEachWeightByTheRate) {
  const auto device = MakeHostDevice();
  const ModelShape shape = {.features = 3, .width = 4, .layers = 2, .classes = 2};
  Mlp model(*device, shape, 7);
  std::vector<std::vector<float>> before;
  for (Parameter& parameter : model.parameters()) before.push_back(parameter.value.ToHost());
  const Batch batch = Task(7, shape.features, shape.classes).MakeBatch(1, 4);
  const Labels labels(*device, batch.labels);
  model.LossAndGradients(Tensor(*device, batch.features), labels, 4);
  model.AdamStep({.rate = 0.01f});
  for (size_t p = 0; p < before.size(); ++p) {
    const std::vector<float> after = model.parameters()[p].value.ToHost();
    const std::vector<float> gradient = model.parameters()[p].gradient.ToHost();
    for (size_t i = 0; i < after.size(); ++i) {
      ASSERT_GT(std::abs(gradient[i]), 1e-5f) << "a gradient near zero shows nothing";
      EXPECT_NEAR(after[i] - before[p][i], gradient[i] > 0 ? -0.01f : 0.01f, 2e-5f);
    }
  }
}

TEST(TrainTest, HostComputesAndEvaluationIsNoTrainingBatch) {
  const auto device = MakeHostDevice();
  EXPECT_TRUE(DeviceComputes(*device));
  const Task task(3, 5, 3);
  EXPECT_EQ(task.MakeBatch(1, 8).features, task.MakeBatch(1, 8).features);
  EXPECT_NE(task.MakeBatch(1, 8).features, task.MakeBatch(-1, 8).features);
}

TEST(KernelTest, ProductsAgreeWithHandComputedOnes) {
  const std::vector<float> a = {1, 2, 3, 4, 5, 6};        // [2, 3]
  const std::vector<float> b = {7, 8, 9, 10, 11, 12};     // [3, 2]
  std::vector<float> c(4);
  MatMul(a.data(), b.data(), c.data(), 2, 2, 3);
  EXPECT_EQ(c, (std::vector<float>{58, 64, 139, 154}));
  const std::vector<float> b_transposed = {7, 9, 11, 8, 10, 12};  // [2, 3]
  MatMulTransposedB(a.data(), b_transposed.data(), c.data(), 2, 2, 3);
  EXPECT_EQ(c, (std::vector<float>{58, 64, 139, 154}));
  const std::vector<float> a_transposed = {1, 4, 2, 5, 3, 6};  // [3, 2]
  std::vector<float> partial(8);
  MatMulTransposedASliced(a_transposed.data(), b.data(), partial.data(), 2, 2, 3, 2);  // one row, then two
  EXPECT_EQ(partial, (std::vector<float>{7, 8, 28, 32, 51, 56, 111, 122}));
  SumSlices(partial.data(), c.data(), 2, 4);
  EXPECT_EQ(c, (std::vector<float>{58, 64, 139, 154}));
}

}  // namespace
}  // namespace hotpack::train
