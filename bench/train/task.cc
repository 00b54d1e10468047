#include "bench/train/task.h"

#include <cstddef>

namespace hotpack::train {
namespace {

// splitmix64 (Steele, Lea, Flood 2014); <random>'s distributions differ between standard libraries.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  float Unit() { return static_cast<float>(Next() >> 40) * (1.0f / 16777216.0f); }  // [0, 1)
  // Near normal: the sum of twelve uniforms has variance 1 and needs no library function.
  float Normal() {
    float sum = -6.0f;
    for (int i = 0; i < 12; ++i) sum += Unit();
    return sum;
  }

 private:
  uint64_t state_;
};

constexpr float kNoise = 0.8f;  // against centres of deviation 1 in each feature

}  // namespace

Task::Task(uint64_t seed, int features, int classes) : seed_(seed), features_(features), classes_(classes) {
  Random random(seed ^ 0xc3a5c85c97cb3127u);
  centres_.resize(static_cast<size_t>(classes) * 2 * static_cast<size_t>(features));
  for (float& value : centres_) value = random.Normal();
}

Batch Task::MakeBatch(int64_t number, int rows) const {
  Random random(seed_ + static_cast<uint64_t>(number) * 0xd6e8feb86659fd93u);
  Batch batch;
  batch.features.reserve(static_cast<size_t>(rows) * static_cast<size_t>(features_));
  for (int row = 0; row < rows; ++row) {
    const auto centre = static_cast<size_t>(random.Next() % (2 * static_cast<uint64_t>(classes_)));
    batch.labels.push_back(static_cast<int32_t>(centre / 2));
    const float* values = &centres_[centre * static_cast<size_t>(features_)];
    for (int f = 0; f < features_; ++f) batch.features.push_back(values[f] + kNoise * random.Normal());
  }
  return batch;
}

}  // namespace hotpack::train
