// The object that a training program trains: a model with its task. The loop (trainer.h) and the command line
// (program.h) are common to all.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/train/device.h"
#include "bench/train/optimizer.h"
#include "bench/train/tensor.h"

namespace hotpack::train {

// Batches are pure functions of (seed, number). Positive numbers train, negative ones evaluate, and the two have no
// batch in common. Not thread-safe. Functions throw what Device and the kernels throw.
class Workload {
 public:
  virtual ~Workload() = default;
  virtual std::vector<Parameter>& parameters() = 0;

  // Starts copying the inputs of batch `number`, of `rows` samples, to the device (StartCopyIn).
  virtual void Prefetch(int64_t number, int rows) = 0;
  // Runs forward and backward on the first prefetched batch that is not yet used. Returns the mean loss of its rows
  // times `weight`, as one element in device memory. Adds the gradients of weight · loss (AddGradient).
  virtual Tensor LossAndGradients(float weight) = 0;
  // Runs forward alone on the first prefetched batch. Returns the mean loss, as one element.
  virtual Tensor Loss() = 0;
  // Returns a figure of merit, the higher the better, for `rows` unseen samples of batch `number` < 0. The program
  // classifies or translates them. Waits for the device.
  virtual double Evaluate(int64_t number, int rows) = 0;
  // Returns the name of Evaluate's figure for the closing line: "accuracy", ...
  virtual std::string MeritName() const = 0;
};

}  // namespace hotpack::train
