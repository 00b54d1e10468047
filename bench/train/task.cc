#include "bench/train/task.h"

#include <cstddef>

#include "bench/train/random.h"

namespace hotpack::train {
namespace {

// Near normal: the sum of twelve uniforms has variance 1 and needs no library function.
float Normal(SplitMix64& random) {
  float sum = -6.0f;
  for (int i = 0; i < 12; ++i) sum += random.Float();
  return sum;
}

constexpr float kNoise = 0.8f;  // against centres of deviation 1 in each feature

}  // namespace

Task::Task(uint64_t seed, int features, int classes) : seed_(seed), features_(features), classes_(classes) {
  SplitMix64 random(seed ^ 0xc3a5c85c97cb3127u);
  centres_.resize(static_cast<size_t>(classes) * 2 * static_cast<size_t>(features));
  for (float& value : centres_) value = Normal(random);
}

Batch Task::MakeBatch(int64_t number, int rows) const {
  SplitMix64 random(seed_ + static_cast<uint64_t>(number) * 0xd6e8feb86659fd93u);
  Batch batch;
  batch.features.reserve(static_cast<size_t>(rows) * static_cast<size_t>(features_));
  for (int row = 0; row < rows; ++row) {
    const auto centre = static_cast<size_t>(random.Next() % (2 * static_cast<uint64_t>(classes_)));
    batch.labels.push_back(static_cast<int32_t>(centre / 2));
    const float* values = &centres_[centre * static_cast<size_t>(features_)];
    for (int f = 0; f < features_; ++f) batch.features.push_back(values[f] + kNoise * Normal(random));
  }
  return batch;
}

}  // namespace hotpack::train
