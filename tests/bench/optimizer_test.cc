// Compares the optimizers with steps computed by hand, and checks the life of gradients.
#include "bench/train/optimizer.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <utility>
#include <vector>

namespace hotpack::train {
namespace {

std::vector<Parameter> OneParameter(Device& device, const std::vector<float>& value) {
  std::vector<Parameter> parameters(1);
  parameters[0].value = Tensor(device, value);
  return parameters;
}

void StepWith(Device& device, Optimizer& optimizer, std::vector<Parameter>& parameters, std::vector<float> gradient) {
  ZeroGradients(parameters);
  AddGradient(device, parameters[0], Tensor(device, gradient));
  optimizer.Step(parameters);
}

TEST(OptimizerTest, SgdKeepsItsVelocity) {
  const auto device = MakeHostDevice();
  auto parameters = OneParameter(*device, {1.0f, -2.0f});
  Optimizer optimizer(*device, {.kind = OptimizerKind::kSgd, .rate = 0.5f, .momentum = 0.5f});
  StepWith(*device, optimizer, parameters, {1.0f, 4.0f});  // velocity 1, 4
  EXPECT_EQ(parameters[0].value.ToHost(), (std::vector<float>{0.5f, -4.0f}));
  StepWith(*device, optimizer, parameters, {2.0f, 0.0f});  // velocity 2.5, 2
  EXPECT_EQ(parameters[0].value.ToHost(), (std::vector<float>{-0.75f, -5.0f}));
  EXPECT_TRUE(parameters[0].variance.empty());
}

TEST(OptimizerTest, SgdWithoutMomentumKeepsNothing) {
  const auto device = MakeHostDevice();
  auto parameters = OneParameter(*device, {1.0f});
  Optimizer optimizer(*device, {.kind = OptimizerKind::kSgd, .rate = 0.25f, .momentum = 0.0f});
  StepWith(*device, optimizer, parameters, {2.0f});
  StepWith(*device, optimizer, parameters, {2.0f});
  EXPECT_EQ(parameters[0].value.ToHost(), (std::vector<float>{0.0f}));
  EXPECT_TRUE(parameters[0].mean.empty());
}

// With decays of 1/2 and gradients g then 0, the unbiased moments of the second step are g/3 and g²/3, and their
// quotient is sqrt(3)/3: worked out from algorithm 1 of Kingma and Ba 2015.
TEST(OptimizerTest, AdamCorrectsItsBias) {
  const auto device = MakeHostDevice();
  auto parameters = OneParameter(*device, {1.0f, 1.0f});
  Optimizer optimizer(
      *device,
      {.kind = OptimizerKind::kAdam, .rate = 0.25f, .decay_mean = 0.5f, .decay_variance = 0.5f, .epsilon = 0.0f});
  StepWith(*device, optimizer, parameters, {8.0f, -0.125f});  // whatever the size: rate · sign
  EXPECT_EQ(parameters[0].value.ToHost(), (std::vector<float>{0.75f, 1.25f}));
  StepWith(*device, optimizer, parameters, {0.0f, 0.0f});
  const std::vector<float> value = parameters[0].value.ToHost();
  EXPECT_NEAR(value[0], 0.75f - 0.25f * 0.57735f, 1e-5f);
  EXPECT_NEAR(value[1], 1.25f + 0.25f * 0.57735f, 1e-5f);
}

TEST(OptimizerTest, GradientsAddUpUntilTheyAreReleased) {
  const auto device = MakeHostDevice();
  auto parameters = OneParameter(*device, {0.0f, 0.0f});
  AddGradient(*device, parameters[0], Tensor(*device, std::vector<float>{1.0f, 2.0f}));
  AddGradient(*device, parameters[0], Tensor(*device, std::vector<float>{10.0f, 20.0f}));
  EXPECT_EQ(parameters[0].gradient.ToHost(), (std::vector<float>{11.0f, 22.0f}));
  ZeroGradients(parameters);
  EXPECT_TRUE(parameters[0].gradient.empty());
  Optimizer optimizer(*device, {});
  EXPECT_THROW(optimizer.Step(parameters), std::logic_error);
}

}  // namespace
}  // namespace hotpack::train
