#include "bench/train/trainer.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bench/train/kernels.h"
#include "bench/train/range.h"

namespace hotpack::train {
namespace {

// Prefetches the micro-batches of an epoch in their order, each one step ahead of its use.
class Feed {
 public:
  Feed(Workload& workload, const TrainOptions& options, int epoch)
      : workload_(workload),
        options_(options),
        count_(static_cast<int64_t>(options.steps) * options.accumulate),
        first_number_(epoch * count_ + 1) {}

  void PrefetchNext() {
    if (next_ == count_) return;  // no batch is in flight while the workload evaluates
    const bool last_step = next_ >= count_ - options_.accumulate;
    const int rows = last_step && options_.last_rows > 0 ? options_.last_rows : options_.rows;
    workload_.Prefetch(first_number_ + next_, rows);
    ++next_;
  }

 private:
  Workload& workload_;
  const TrainOptions& options_;
  int64_t count_;
  int64_t first_number_;
  int64_t next_ = 0;
};

// Returns the mean loss of the step's micro-batches.
float TrainStep(Workload& workload, Optimizer& optimizer, Feed& feed, int accumulate) {
  const Range range("step");
  ZeroGradients(workload.parameters());
  Tensor loss;
  for (int i = 0; i < accumulate; ++i) {
    Tensor part = workload.LossAndGradients(1.0f / static_cast<float>(accumulate));
    if (loss.empty()) {
      loss = std::move(part);
    } else {
      AddInto(loss.data(), part.data(), 1);
    }
    feed.PrefetchNext();
  }
  optimizer.Step(workload.parameters());
  return loss.ToHost()[0];
}

double Evaluate(Workload& workload, const TrainOptions& options) {
  const Range range("evaluation");
  double sum = 0;
  for (int i = 1; i <= options.evaluations; ++i) sum += workload.Evaluate(-i, options.rows);
  return sum / options.evaluations;
}

// Returns the loss of batch 1 with element `i` of the parameter's value changed by `by`.
float MovedLoss(Device& device, Workload& workload, int rows, Parameter& parameter, const std::vector<float>& value,
                size_t i, float by) {
  std::vector<float> moved = value;
  moved[i] += by;
  device.CopyIn(parameter.value.data(), moved.data(), moved.size() * sizeof(float));
  workload.Prefetch(1, rows);
  return workload.Loss().ToHost()[0];
}

double GradientError(Device& device, Workload& workload, int rows, Parameter& parameter) {
  constexpr float kStep = 1e-2f;  // balances the float loss's rounding (1e-7 / step) with the error of order step²
  const std::vector<float> gradient = parameter.gradient.ToHost();
  const std::vector<float> value = parameter.value.ToHost();
  if (gradient.size() != value.size()) return HUGE_VAL;  // the backward pass omitted it
  double largest = 1e-3, difference = 0;
  for (size_t i = 0; i < value.size(); ++i) {
    const double below = MovedLoss(device, workload, rows, parameter, value, i, -kStep);
    const double above = MovedLoss(device, workload, rows, parameter, value, i, kStep);
    const double numeric = (above - below) / (2.0 * kStep);
    if (!std::isfinite(numeric) || !std::isfinite(gradient[i])) return HUGE_VAL;
    largest = std::max(largest, std::fabs(static_cast<double>(gradient[i])));
    difference = std::max(difference, std::fabs(numeric - gradient[i]));
  }
  device.CopyIn(parameter.value.data(), value.data(), value.size() * sizeof(float));
  return difference / largest;
}

}  // namespace

bool DeviceComputes(Device& device) {
  constexpr float kWritten = 42.0f;
  Tensor probe(device, std::vector<float>{0.0f});
  Fill(probe.data(), 1, kWritten);
  return probe.ToHost()[0] == kWritten;
}

TrainResult Train(Device& device, Workload& workload, const TrainOptions& options,
                  const std::function<void(int64_t step, float loss)>& on_loss) {
  const bool computes = DeviceComputes(device);
  Optimizer optimizer(device, options.optimizer);
  TrainResult result;
  for (const Parameter& parameter : workload.parameters()) result.parameters += parameter.value.count();
  int64_t step = 0;
  for (int epoch = 0; epoch < options.epochs; ++epoch) {
    Feed feed(workload, options, epoch);
    feed.PrefetchNext();
    for (int i = 0; i < options.steps; ++i) {
      const float loss = TrainStep(workload, optimizer, feed, options.accumulate);
      ++step;
      if (computes && !std::isfinite(loss)) {
        throw std::runtime_error("the loss of step " + std::to_string(step) + " is not finite");
      }
      if (step == 1) result.first_loss = loss;
      result.last_loss = loss;
      on_loss(step, loss);
    }
    if (options.evaluations > 0) result.merit = Evaluate(workload, options);
  }
  return result;
}

double LargestGradientError(Device& device, Workload& workload, int rows) {
  ZeroGradients(workload.parameters());
  workload.Prefetch(1, rows);
  workload.LossAndGradients(1.0f);
  double worst = 0;
  for (Parameter& parameter : workload.parameters()) {
    worst = std::max(worst, GradientError(device, workload, rows, parameter));
  }
  return worst;
}

}  // namespace hotpack::train
