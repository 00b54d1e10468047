// The training loop and the check of the gradients.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "bench/train/device.h"
#include "bench/train/model.h"
#include "bench/train/task.h"

namespace hotpack::train {

struct TrainOptions {
  ModelShape shape;
  int batch = 1;           // rows, ≥ 1
  int steps = 1;           // ≥ 1
  int evaluate_every = 0;  // > 0: on unseen rows after as many steps each, and at the end; 0: never
  uint64_t seed = 1;
};

struct TrainResult {
  float first_loss = 0;
  float last_loss = 0;
  double accuracy = -1;  // share of unseen rows that the trained model labels rightly; -1: not evaluated
  int64_t parameters = 0;
};

// True if kernels change memory; a simulated device accepts launches and does nothing.
bool DeviceComputes(Device& device);

// Trains a fresh model; `on_loss(step, loss)` after each step. The same options give the same bits.
// Throws std::runtime_error on a device error or, where the device computes, when the loss is not finite.
TrainResult Train(Device& device, const TrainOptions& options,
                  const std::function<void(int step, float loss)>& on_loss);

// Compares each gradient of a tiny model with central differences of the loss. Returns the largest difference, as a
// share of the parameter's largest gradient; a right backward pass stays below kGradientTolerance.
inline constexpr double kGradientTolerance = 0.02;
double LargestGradientError(Device& device, uint64_t seed);

}  // namespace hotpack::train
