// The training loop and the perceptron on the host: the arithmetic is right, repeatable, and gives memory back as
// documented.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/train/kernels.h"
#include "bench/train/mlp_model.h"
#include "bench/train/trainer.h"
#include "tests/bench/train_checks.h"
#include "tests/bench/train_devices.h"

namespace hotpack::train {
namespace {

constexpr MlpShape kSmall = {.features = 12, .width = 32, .layers = 3, .classes = 4};
constexpr MlpShape kTiny = {.features = 5, .width = 6, .layers = 3, .classes = 3};

TrainOptions SmallTraining() {
  TrainOptions options;
  options.rows = 32;
  options.steps = 80;
  return options;
}

std::vector<float> Losses(Device& device, const TrainOptions& options, uint64_t seed = 1) {
  Mlp model(device, kSmall, seed);
  return Losses(device, model, options);
}

// The gradients of the micro-batches with these numbers, each of weight 1 / their number.
std::vector<std::vector<float>> Gradients(Mlp& model, const std::vector<int64_t>& numbers, int rows) {
  ZeroGradients(model.parameters());
  for (const int64_t number : numbers) {
    model.Prefetch(number, rows);
    model.LossAndGradients(1.0f / static_cast<float>(numbers.size()));
  }
  std::vector<std::vector<float>> gradients;
  for (Parameter& parameter : model.parameters()) gradients.push_back(parameter.gradient.ToHost());
  return gradients;
}

TEST(TrainTest, GradientsAgreeWithDifferencesOfTheLoss) {
  const auto device = MakeHostDevice();
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    Mlp model(*device, kTiny, seed);
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    ExpectRightGradients(*device, model, 4);
  }
}

// The check itself: a backward pass that leaves a factor out is seen, and so is one that leaves a parameter out.
class WrongMlp : public Mlp {
 public:
  enum Fault { kFactor, kLeftOut };
  WrongMlp(Device& device, Fault fault) : Mlp(device, kTiny, 1), fault_(fault) {}
  Tensor LossAndGradients(float weight) override {
    Tensor loss = Mlp::LossAndGradients(weight);
    Tensor& gradient = parameters()[2].gradient;
    if (fault_ == kFactor) Scale(gradient.data(), gradient.data(), gradient.count(), 1.1f);
    if (fault_ == kLeftOut) gradient.Reset();
    return loss;
  }

 private:
  Fault fault_;
};

TEST(TrainTest, WrongGradientsAreFound) {
  const auto device = MakeHostDevice();
  for (const auto fault : {WrongMlp::kFactor, WrongMlp::kLeftOut}) {
    WrongMlp model(*device, fault);
    EXPECT_GT(LargestGradientError(*device, model, 4), kGradientTolerance);
  }
}

TEST(TrainTest, LearnsTheTask) {
  const auto device = MakeHostDevice();
  for (const auto kind : {OptimizerKind::kAdam, OptimizerKind::kSgd}) {
    TrainOptions options = SmallTraining();
    options.steps = 300;
    options.evaluations = 4;
    options.optimizer.kind = kind;
    if (kind == OptimizerKind::kSgd) options.optimizer.rate = 0.02f;
    Mlp model(*device, kSmall, 1);
    const TrainResult result = Train(*device, model, options, [](int64_t, float) {});
    EXPECT_LT(result.last_loss, 0.5f * result.first_loss);
    EXPECT_GT(result.merit, 0.9);
    EXPECT_EQ(result.parameters, 12 * 32 + 32 + 32 * 32 + 32 + 32 * 4 + 4);
  }
}

TEST(TrainTest, EqualRunsGiveEqualBits) {
  const auto device = MakeHostDevice();
  const std::vector<float> first = Losses(*device, SmallTraining());
  EXPECT_EQ(first, Losses(*device, SmallTraining()));
  EXPECT_NE(first, Losses(*device, SmallTraining(), 2));
}

TEST(TrainTest, ASlowCopyStreamChangesNothing) {
  const auto device = MakeHostDevice();
  SlowCopyDevice slow;
  TrainOptions options = SmallTraining();
  options.steps = 5;
  options.epochs = 2;
  options.accumulate = 3;
  options.last_rows = 7;
  options.evaluations = 2;
  EXPECT_EQ(Losses(*device, options), Losses(slow, options));
  EXPECT_EQ(slow.LiveBytes(), 0u);
}

TEST(TrainTest, MicroBatchesAddUpToTheGradientOfTheLargeBatch) {
  const auto device = MakeHostDevice();
  Mlp model(*device, kSmall, 1);
  const auto once = Gradients(model, {1}, 16);
  EXPECT_EQ(once, Gradients(model, {1, 1}, 16)) << "halves of equal batches add up without rounding";

  const std::vector<int64_t> numbers = {1, 2, 3};
  const auto together = Gradients(model, numbers, 16);
  auto mean = together;
  for (auto& values : mean) values.assign(values.size(), 0.0f);
  for (const int64_t number : numbers) {
    const auto single = Gradients(model, {number}, 16);
    for (size_t p = 0; p < mean.size(); ++p) {
      for (size_t i = 0; i < mean[p].size(); ++i) mean[p][i] += single[p][i] / 3.0f;
    }
  }
  for (size_t p = 0; p < mean.size(); ++p) {
    for (size_t i = 0; i < mean[p].size(); ++i) EXPECT_NEAR(together[p][i], mean[p][i], 1e-5f);
  }
  EXPECT_NE(together, once);
}

TEST(TrainTest, TheLossHasItsWeight) {
  const auto device = MakeHostDevice();
  Mlp model(*device, kSmall, 1);
  for (int i = 0; i < 3; ++i) model.Prefetch(1, 16);
  const float whole = model.LossAndGradients(1.0f).ToHost()[0];
  EXPECT_EQ(model.LossAndGradients(0.25f).ToHost()[0], 0.25f * whole);
  EXPECT_EQ(model.Loss().ToHost()[0], whole);
}

TEST(TrainTest, StepsRepeatOneSequenceOfRequestsAndLeaveNothingBehind) {
  TrainOptions options = SmallTraining();
  options.steps = 7;
  const auto requests =
      ExpectRepeatedSteps(options, [](Device& device) { return std::make_unique<Mlp>(device, kSmall, 1); });
  ASSERT_EQ(requests.size(), 7u);
  EXPECT_EQ(requests.back().size() + 2, requests[1].size()) << "the last step prefetches no inputs and labels";
  EXPECT_GT(requests[0].size(), requests[1].size()) << "weights and optimizer state belong to the first step";
}

TEST(TrainTest, GradientsAreCarriedIntoTheNextStep) {
  CountingDevice device;
  Mlp model(device, {.features = 4, .width = 8, .layers = 2, .classes = 3}, 1);
  const size_t weights = device.LiveBytes();
  EXPECT_EQ(weights, (4 * 8 + 8 + 8 * 3 + 3) * sizeof(float));
  model.Prefetch(1, 8);
  model.LossAndGradients(1.0f);
  EXPECT_EQ(device.LiveBytes(), 2 * weights);
  Optimizer(device, {}).Step(model.parameters());
  EXPECT_EQ(device.LiveBytes(), 4 * weights);
  ZeroGradients(model.parameters());
  EXPECT_EQ(device.LiveBytes(), 3 * weights);
}

// Records the loop's calls. Its loss is preset.
class Diary : public Workload {
 public:
  explicit Diary(Device& device) : device_(device), parameters_(1) {
    parameters_[0].value = Tensor(device, std::vector<float>{0.0f});
  }
  std::vector<Parameter>& parameters() override { return parameters_; }
  void Prefetch(int64_t number, int rows) override {
    text += " P" + std::to_string(number) + ":" + std::to_string(rows);
  }
  Tensor LossAndGradients(float weight) override {
    text += " G";
    AddGradient(device_, parameters_[0], Tensor(device_, std::vector<float>{weight}));
    return Tensor(device_, std::vector<float>{weight * loss});
  }
  Tensor Loss() override { return Tensor(device_, std::vector<float>{loss}); }
  double Evaluate(int64_t number, int rows) override {
    text += " E" + std::to_string(number) + ":" + std::to_string(rows);
    return static_cast<double>(-number);
  }
  std::string MeritName() const override { return "merit"; }

  std::string text;
  float loss = 1.0f;

 private:
  Device& device_;
  std::vector<Parameter> parameters_;
};

TEST(TrainTest, EachMicroBatchIsPrefetchedOneAhead) {
  const auto device = MakeHostDevice();
  Diary diary(*device);
  TrainOptions options;
  options.rows = 8;
  options.last_rows = 5;
  options.accumulate = 2;
  options.steps = 2;
  options.epochs = 2;
  options.evaluations = 2;
  const TrainResult result = Train(*device, diary, options, [&](int64_t step, float loss) {
    diary.text += " S" + std::to_string(step);
    EXPECT_EQ(loss, 1.0f) << "the mean of its micro-batches";
  });
  EXPECT_EQ(diary.text,
            " P1:8 G P2:8 G P3:5 S1 G P4:5 G S2 E-1:8 E-2:8"
            " P5:8 G P6:8 G P7:5 S3 G P8:5 G S4 E-1:8 E-2:8");
  EXPECT_EQ(result.merit, 1.5);
}

TEST(TrainTest, ALossThatIsNotFiniteEndsTheTraining) {
  const auto device = MakeHostDevice();
  Diary diary(*device);
  diary.loss = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THROW(Train(*device, diary, {}, [](int64_t, float) {}), std::runtime_error);
}

TEST(TrainTest, HostComputesAndEvaluationIsNoTrainingBatch) {
  const auto device = MakeHostDevice();
  EXPECT_TRUE(DeviceComputes(*device));
  const Task task(3, 5, 3);
  EXPECT_EQ(task.MakeBatch(1, 8).features, task.MakeBatch(1, 8).features);
  EXPECT_NE(task.MakeBatch(1, 8).features, task.MakeBatch(-1, 8).features);
}

TEST(KernelTest, ProductsAgreeWithHandComputedOnes) {
  const std::vector<float> a = {1, 2, 3, 4, 5, 6};     // [2, 3]
  const std::vector<float> b = {7, 8, 9, 10, 11, 12};  // [3, 2]
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
