// A workload that labels rows: what the perceptron and the convolutional net have in common.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "bench/train/task.h"
#include "bench/train/tensor.h"
#include "bench/train/workload.h"

namespace hotpack::train {

// Returns weights that are drawn from a uniform. Variance 2 / inputs keeps the activations' scale (He et al. 2015); a
// uniform of half-width s has variance s² / 3.
Tensor RandomWeights(Device& device, int64_t inputs, int64_t outputs, uint64_t seed);
Tensor Filled(Device& device, int64_t count, float value);
// Returns the seed of the weights with this number, in a model with this seed.
uint64_t SeedOf(uint64_t seed, size_t number);

class Classifier : public Workload {
 public:
  std::vector<Parameter>& parameters() override { return parameters_; }
  void Prefetch(int64_t number, int rows) override;
  Tensor Loss() override;
  double Evaluate(int64_t number, int rows) override;  // the share of rows whose largest logit is the label's
  std::string MeritName() const override { return "accuracy"; }

 protected:
  enum class Purpose { kLoss, kEvaluation };

  // classes ≥ 2
  Classifier(Device& device, int classes) : device_(device), classes_(classes) {}

  virtual Batch MakeBatch(int64_t number, int rows) const = 0;
  // Returns the logits [rows, classes] of features [rows, features of one row], and keeps nothing else.
  virtual Tensor Logits(Tensor features, int rows, Purpose purpose) = 0;

  // LossAndGradients() by the model's two passes: `forward(features, rows)` returns the logits, `backward(gradient,
  // rows)` takes their gradient.
  Tensor LossAndGradientsBy(float weight, const std::function<Tensor(Tensor, int)>& forward,
                            const std::function<void(Tensor, int)>& backward);

  Device& device_;
  std::vector<Parameter> parameters_;

 private:
  // A batch in device memory.
  struct LabelledRows {
    Tensor features;
    Labels labels;  // [rows]
    int rows = 0;
  };

  // Starts to copy a batch. Compute work may use it after Device::WaitForCopies().
  LabelledRows StartCopy(const Batch& batch);
  // Returns the first batch that was prefetched and waits for its copies. Throws std::logic_error if there is none.
  LabelledRows Take();
  // Returns the mean loss of the rows of `logits`, one element. `probabilities`, if not null, receives the operands of
  // the backward pass, [rows, classes].
  Tensor MeanLoss(Tensor logits, const Labels& labels, Tensor* probabilities);

  const int classes_;
  std::deque<LabelledRows> prefetched_;
};

}  // namespace hotpack::train
