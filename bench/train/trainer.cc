#include "bench/train/trainer.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>
#include <vector>

#include "bench/train/kernels.h"

namespace hotpack::train {
namespace {

constexpr int kEvaluationBatches = 4;

double Accuracy(Device& device, Mlp& model, const Task& task, int rows) {
  double correct = 0;
  for (int batch_number = 1; batch_number <= kEvaluationBatches; ++batch_number) {
    const Batch batch = task.MakeBatch(-batch_number, rows);
    const Labels labels(device, batch.labels);
    for (float value : model.CorrectRows(Tensor(device, batch.features), labels, rows).ToHost()) correct += value;
  }
  return correct / (static_cast<double>(rows) * kEvaluationBatches);
}

float TrainStep(Device& device, Mlp& model, const Batch& batch, int rows) {
  Tensor input(device, batch.features);
  const Labels labels(device, batch.labels);
  model.ZeroGradients();
  const Tensor loss = model.LossAndGradients(std::move(input), labels, rows);
  model.AdamStep({});
  return loss.ToHost()[0];
}

}  // namespace

bool DeviceComputes(Device& device) {
  constexpr float kWritten = 42.0f;
  Tensor probe(device, std::vector<float>{0.0f});
  Fill(probe.data(), 1, kWritten);
  return probe.ToHost()[0] == kWritten;
}

TrainResult Train(Device& device, const TrainOptions& options,
                  const std::function<void(int step, float loss)>& on_loss) {
  const bool computes = DeviceComputes(device);
  const Task task(options.seed, options.shape.features, options.shape.classes);
  Mlp model(device, options.shape, options.seed);
  TrainResult result;
  result.parameters = model.ParameterCount();
  for (int step = 1; step <= options.steps; ++step) {
    const float loss = TrainStep(device, model, task.MakeBatch(step, options.batch), options.batch);
    if (computes && !std::isfinite(loss)) {
      throw std::runtime_error("the loss of step " + std::to_string(step) + " is not finite");
    }
    if (step == 1) result.first_loss = loss;
    result.last_loss = loss;
    on_loss(step, loss);
    if (options.evaluate_every > 0 && step % options.evaluate_every == 0 && step != options.steps) {
      Accuracy(device, model, task, options.batch);
    }
  }
  if (options.evaluate_every > 0) result.accuracy = Accuracy(device, model, task, options.batch);
  return result;
}

double LargestGradientError(Device& device, uint64_t seed) {
  constexpr int kRows = 4;
  constexpr float kStep = 1e-2f;  // balances the float loss's rounding (1e-7 / step) with the error of order step²
  const ModelShape shape = {.features = 5, .width = 6, .layers = 3, .classes = 3};
  const Batch batch = Task(seed, shape.features, shape.classes).MakeBatch(1, kRows);
  const Labels labels(device, batch.labels);
  Mlp model(device, shape, seed);
  const auto loss = [&] { return model.Loss(Tensor(device, batch.features), labels, kRows).ToHost()[0]; };
  model.LossAndGradients(Tensor(device, batch.features), labels, kRows);

  double worst = 0;
  for (Parameter& parameter : model.parameters()) {
    const std::vector<float> gradient = parameter.gradient.ToHost();
    const std::vector<float> value = parameter.value.ToHost();
    const size_t bytes = value.size() * sizeof(float);
    double largest = 1e-3, difference = 0;
    for (size_t i = 0; i < value.size(); ++i) {
      float sides[2];
      for (int side = 0; side < 2; ++side) {
        std::vector<float> moved = value;
        moved[i] += side == 0 ? -kStep : kStep;
        device.CopyIn(parameter.value.data(), moved.data(), bytes);
        sides[side] = loss();
      }
      const double numeric = (static_cast<double>(sides[1]) - sides[0]) / (2.0 * kStep);
      largest = std::max(largest, std::fabs(static_cast<double>(gradient[i])));
      difference = std::max(difference, std::fabs(numeric - gradient[i]));
    }
    device.CopyIn(parameter.value.data(), value.data(), bytes);
    worst = std::max(worst, difference / largest);
  }
  return worst;
}

}  // namespace hotpack::train
