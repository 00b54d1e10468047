#include "bench/train/classifier.h"

#include <stdexcept>
#include <utility>

#include "bench/train/kernels.h"

namespace hotpack::train {

LabelledRows StartCopy(Device& device, const Batch& batch) {
  LabelledRows rows;
  rows.features = Tensor::StartCopy(device, batch.features);
  rows.labels = Labels::StartCopy(device, batch.labels);
  rows.rows = static_cast<int>(batch.labels.size());
  return rows;
}

LabelledRows PrefetchedRows::Take(Device& device) {
  if (rows_.empty()) throw std::logic_error("no batch was prefetched");
  LabelledRows rows = std::move(rows_.front());
  rows_.pop_front();
  device.WaitForCopies();
  return rows;
}

Tensor MeanLoss(Device& device, Tensor logits, const Labels& labels, int classes, Tensor* probabilities) {
  const auto rows = static_cast<int>(labels.count());
  Tensor shares(device, logits.count());
  Tensor losses(device, rows);
  SoftmaxLoss(logits.data(), labels.data(), shares.data(), losses.data(), rows, classes);
  logits.Reset();
  if (probabilities != nullptr) *probabilities = std::move(shares);
  Tensor loss(device, 1);
  Mean(losses.data(), loss.data(), rows);
  return loss;
}

double CorrectShare(Device& device, const Tensor& logits, const Labels& labels, int classes) {
  const auto rows = static_cast<int>(labels.count());
  Tensor correct(device, rows);
  Correct(logits.data(), labels.data(), correct.data(), rows, classes);
  double sum = 0;
  for (const float value : correct.ToHost()) sum += static_cast<double>(value);
  return sum / rows;
}

}  // namespace hotpack::train
