// What holds for every workload of the training programs.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "bench/train/device.h"
#include "bench/train/trainer.h"
#include "bench/train/workload.h"
#include "tests/bench/train_devices.h"

namespace hotpack::train {

// Gradients agree with differences of the loss.
inline void ExpectRightGradients(Device& device, Workload& workload, int rows) {
  EXPECT_LT(LargestGradientError(device, workload, rows), kGradientTolerance);
}

// Returns the losses of a training.
inline std::vector<float> Losses(Device& device, Workload& workload, const TrainOptions& options) {
  std::vector<float> losses;
  Train(device, workload, options, [&](int64_t, float loss) { losses.push_back(loss); });
  return losses;
}

// Trains `make(device)` for one epoch. Expects that all steps but the first and the last make the same requests and
// hold the same memory, and that nothing is left behind. Returns the requests of each step, in bytes.
template <typename Make>
std::vector<std::vector<size_t>> ExpectRepeatedSteps(const TrainOptions& options, Make make) {
  CountingDevice device;
  std::vector<std::vector<size_t>> requests;
  std::vector<size_t> live;
  {
    const std::unique_ptr<Workload> workload = make(device);
    Train(device, *workload, options, [&](int64_t, float) {
      requests.push_back(device.TakeRequests());
      live.push_back(device.LiveBytes());
    });
  }
  EXPECT_EQ(requests.size(), static_cast<size_t>(options.steps));
  for (size_t step = 2; step + 1 < requests.size(); ++step) {
    EXPECT_EQ(requests[step], requests[1]) << "step " << step + 1;
    EXPECT_EQ(live[step], live[1]);
  }
  EXPECT_EQ(device.LiveBytes(), 0u);
  return requests;
}

}  // namespace hotpack::train
