// What a training program trains: a model with its task. The loop (trainer.h) and the command line (program.h) are
// the same for all.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/train/device.h"
#include "bench/train/optimizer.h"
#include "bench/train/tensor.h"

namespace hotpack::train {

// Batches are pure functions of (seed, number): positive numbers train, negative ones evaluate and never meet those.
// Not thread-safe. Functions throw what Device and the kernels throw.
class Workload {
 public:
  virtual ~Workload() = default;
  virtual std::vector<Parameter>& parameters() = 0;

  // Starts copying the inputs of batch `number`, of `rows` samples, to the device (StartCopyIn).
  virtual void Prefetch(int64_t number, int rows) = 0;
  // Forward and backward of the batch that was prefetched first and not yet used: the mean loss of its rows times
  // `weight`, as one element in device memory; the gradients of weight · loss are added (AddGradient).
  virtual Tensor LossAndGradients(float weight) = 0;
  // Forward alone of the batch that was prefetched first: the mean loss, as one element.
  virtual Tensor Loss() = 0;
  // Whatever the program does with unseen samples (classifies them, translates sentences): a figure of merit, the
  // higher the better, for `rows` samples of batch `number` < 0. Waits for the device.
  virtual double Evaluate(int64_t number, int rows) = 0;
  // What Evaluate's figure is, for the closing line: "accuracy", ...
  virtual std::string MeritName() const = 0;
};

}  // namespace hotpack::train
