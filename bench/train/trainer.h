// The training loop and the check of the gradients, for any workload.
#pragma once

#include <cstdint>
#include <functional>

#include "bench/train/device.h"
#include "bench/train/optimizer.h"
#include "bench/train/workload.h"

namespace hotpack::train {

struct TrainOptions {
  int rows = 1;         // of a micro-batch, ≥ 1
  int accumulate = 1;   // micro-batches a step, ≥ 1: their gradients are averaged before the weights move
  int steps = 1;        // an epoch, ≥ 1
  int epochs = 1;       // ≥ 1
  int last_rows = 0;    // of each micro-batch of an epoch's last step, ≤ rows; 0: as many as the others
  int evaluations = 0;  // batches of `rows` unseen samples after each epoch
  OptimizerOptions optimizer;
};

struct TrainResult {
  float first_loss = 0;
  float last_loss = 0;
  double merit = 0;  // mean of the last epoch's evaluations, if there were any
  int64_t parameters = 0;
};

// Returns whether kernels change memory. A simulated device accepts launches and does nothing.
bool DeviceComputes(Device& device);

// Trains, and calls `on_loss(step, loss)` after each step, counted from 1 through all epochs. Training batches have the
// numbers 1, 2, …, evaluated ones −1, −2, … after each epoch. Within an epoch the next micro-batch's copy starts once
// the present one's work is submitted, before the host waits for its loss. The same workload, device and options give
// the same bits. Throws std::runtime_error on a device error, or, if the device computes, when a loss is not finite.
TrainResult Train(Device& device, Workload& workload, const TrainOptions& options,
                  const std::function<void(int64_t step, float loss)>& on_loss);

// Compares each gradient of batch 1 with `rows` rows to central differences of the loss. For tiny workloads, since it
// runs the forward pass twice for each weight. Returns the largest difference, as a share of the parameter's largest
// gradient. A correct backward pass stays below kGradientTolerance.
inline constexpr double kGradientTolerance = 0.02;
double LargestGradientError(Device& device, Workload& workload, int rows);

}  // namespace hotpack::train
