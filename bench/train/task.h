// A generated classification task: samples around two centres per class, so that no linear map separates the classes.
#pragma once

#include <cstdint>
#include <vector>

namespace hotpack::train {

struct Batch {
  std::vector<float> features;  // [rows, feature count]
  std::vector<int32_t> labels;  // [rows], 0 .. class count − 1
};

// Generates batches as a pure function of (seed, number), the same on every machine. Thread-safe.
class Task {
 public:
  Task(uint64_t seed, int features, int classes);
  // Returns the rows of batch `number`. Negative numbers are for evaluation and share no batch with the training ones.
  Batch MakeBatch(int64_t number, int rows) const;
  int features() const { return features_; }
  int classes() const { return classes_; }

 private:
  uint64_t seed_;
  int features_;
  int classes_;
  std::vector<float> centres_;  // [class, 2, feature]
};

}  // namespace hotpack::train
