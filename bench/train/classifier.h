// Common parts of the programs that label rows: batches on their way to the device, the loss, the share of correct
// labels.
#pragma once

#include <deque>

#include "bench/train/task.h"
#include "bench/train/tensor.h"

namespace hotpack::train {

// A batch in device memory.
struct LabelledRows {
  Tensor features;  // [rows, features of one row]
  Labels labels;    // [rows]
  int rows = 0;
};

// Starts to copy a batch. Compute work may use it after Device::WaitForCopies().
LabelledRows StartCopy(Device& device, const Batch& batch);

// Batches whose copies were started, first in, first out. Not thread-safe.
class PrefetchedRows {
 public:
  void Push(LabelledRows rows) { rows_.push_back(std::move(rows)); }
  // Returns the first batch and waits for its copies. Throws std::logic_error if nothing was prefetched.
  LabelledRows Take(Device& device);

 private:
  std::deque<LabelledRows> rows_;
};

// Returns the mean loss of the rows of `logits` [rows, classes], one element. `probabilities`, if not null, receives
// the operands of the backward pass, [rows, classes].
Tensor MeanLoss(Device& device, Tensor logits, const Labels& labels, int classes, Tensor* probabilities);

// Returns the share, 0 to 1, of rows whose largest logit is the label's. Waits for the device.
double CorrectShare(Device& device, const Tensor& logits, const Labels& labels, int classes);

}  // namespace hotpack::train
