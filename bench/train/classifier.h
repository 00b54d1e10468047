// What the programs that label rows have in common: batches on their way to the device, the loss, the share labelled
// rightly.
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

// Starts copying a batch; compute work may use it after Device::WaitForCopies().
LabelledRows StartCopy(Device& device, const Batch& batch);

// Batches whose copies have been started, first in, first out. Not thread-safe.
class PrefetchedRows {
 public:
  void Push(LabelledRows rows) { rows_.push_back(std::move(rows)); }
  LabelledRows Take(Device& device);  // and waits for the copies. std::logic_error if nothing was prefetched

 private:
  std::deque<LabelledRows> rows_;
};

// The mean loss of the rows of `logits` [rows, classes], one element; `probabilities`, if not null, receives what the
// backward pass needs, [rows, classes].
Tensor MeanLoss(Device& device, Tensor logits, const Labels& labels, int classes, Tensor* probabilities);

// The share, 0 to 1, of rows whose largest logit is the label's. Waits for the device.
double CorrectShare(Device& device, const Tensor& logits, const Labels& labels, int classes);

}  // namespace hotpack::train
