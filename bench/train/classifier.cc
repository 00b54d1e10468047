#include "bench/train/classifier.h"

#include <cmath>
#include <stdexcept>
#include <utility>

#include "bench/train/kernels.h"

namespace hotpack::train {

Tensor RandomWeights(Device& device, int64_t inputs, int64_t outputs, uint64_t seed) {
  Tensor weights(device, inputs * outputs);
  FillUniform(weights.data(), weights.count(), seed, std::sqrt(6.0f / static_cast<float>(inputs)));
  return weights;
}

Tensor Filled(Device& device, int64_t count, float value) {
  Tensor tensor(device, count);
  Fill(tensor.data(), count, value);
  return tensor;
}

uint64_t SeedOf(uint64_t seed, size_t number) { return seed + number * 0x51ed2701u; }

Classifier::LabelledRows Classifier::StartCopy(const Batch& batch) {
  LabelledRows rows;
  rows.features = Tensor::StartCopy(device_, batch.features);
  rows.labels = Labels::StartCopy(device_, batch.labels);
  rows.rows = static_cast<int>(batch.labels.size());
  return rows;
}

Classifier::LabelledRows Classifier::Take() {
  if (prefetched_.empty()) throw std::logic_error("no batch was prefetched");
  LabelledRows rows = std::move(prefetched_.front());
  prefetched_.pop_front();
  device_.WaitForCopies();
  return rows;
}

Tensor Classifier::MeanLoss(Tensor logits, const Labels& labels, Tensor* probabilities) {
  const auto rows = static_cast<int>(labels.count());
  Tensor shares(device_, logits.count());
  Tensor losses(device_, rows);
  SoftmaxLoss(logits.data(), labels.data(), shares.data(), losses.data(), rows, classes_);
  logits.Reset();
  if (probabilities != nullptr) *probabilities = std::move(shares);
  Tensor loss(device_, 1);
  Mean(losses.data(), loss.data(), rows);
  return loss;
}

void Classifier::Prefetch(int64_t number, int rows) { prefetched_.push_back(StartCopy(MakeBatch(number, rows))); }

Tensor Classifier::LossAndGradientsBy(float weight, const std::function<Tensor(Tensor, int)>& forward,
                                      const std::function<void(Tensor, int)>& backward) {
  LabelledRows inputs = Take();
  const int rows = inputs.rows;
  Tensor logits = forward(std::move(inputs.features), rows);
  Tensor probabilities;
  Tensor loss = MeanLoss(std::move(logits), inputs.labels, &probabilities);
  if (weight != 1.0f) Scale(loss.data(), loss.data(), 1, weight);

  Tensor gradient(device_, probabilities.count());
  SoftmaxLossBackward(probabilities.data(), inputs.labels.data(), gradient.data(), rows, classes_, weight);
  probabilities.Reset();
  inputs.labels.Reset();
  backward(std::move(gradient), rows);
  return loss;
}

Tensor Classifier::Loss() {
  LabelledRows inputs = Take();
  Tensor logits = Logits(std::move(inputs.features), inputs.rows, Purpose::kLoss);
  return MeanLoss(std::move(logits), inputs.labels, nullptr);
}

double Classifier::Evaluate(int64_t number, int rows) {
  LabelledRows inputs = StartCopy(MakeBatch(number, rows));
  device_.WaitForCopies();
  const Tensor logits = Logits(std::move(inputs.features), rows, Purpose::kEvaluation);
  Tensor correct(device_, rows);
  Correct(logits.data(), inputs.labels.data(), correct.data(), rows, classes_);
  double sum = 0;
  for (const float value : correct.ToHost()) sum += static_cast<double>(value);
  return sum / rows;
}

}  // namespace hotpack::train
