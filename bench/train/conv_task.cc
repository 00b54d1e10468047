#include "bench/train/conv_task.h"

#include <cmath>
#include <numbers>
#include <random>

namespace hotpack::train {
namespace {

constexpr float kNoise = 0.5f;       // half-width, uniform, against strengths up to 1
constexpr float kWaveLength = 4.0f;  // pixels

// The engine's words are specified bit for bit by the C++ standard; its distributions are not.
class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  uint64_t Next() { return engine_(); }
  float Symmetric() { return static_cast<float>(engine_() >> 40) * (1.0f / 8388608.0f) - 1.0f; }  // [-1, 1)

 private:
  std::mt19937_64 engine_;
};

}  // namespace

GratingTask::GratingTask(uint64_t seed, int side, int classes) : seed_(seed), side_(side) {
  Random random(seed ^ 0x9ae16a3b2f90404fu);
  for (int c = 0; c < classes; ++c) {
    Wave& wave = waves_.emplace_back();
    const float direction = std::numbers::pi_v<float> * static_cast<float>(c) / static_cast<float>(classes);
    wave.x = 2 * std::numbers::pi_v<float> / kWaveLength * std::cos(direction);
    wave.y = 2 * std::numbers::pi_v<float> / kWaveLength * std::sin(direction);
    for (float& strength : wave.strength) strength = random.Symmetric();
    wave.strength[c % kColors] = 1.0f;
  }
}

Batch GratingTask::MakeBatch(int64_t number, int rows) const {
  Random random(seed_ + static_cast<uint64_t>(number) * 0xd6e8feb86659fd93u);
  Batch batch;
  batch.features.reserve(static_cast<size_t>(rows) * static_cast<size_t>(side_) * static_cast<size_t>(side_) * kColors);
  for (int row = 0; row < rows; ++row) {
    const auto label = static_cast<size_t>(random.Next() % waves_.size());
    batch.labels.push_back(static_cast<int32_t>(label));
    const Wave& wave = waves_[label];
    const float phase = std::numbers::pi_v<float> * random.Symmetric();
    for (int y = 0; y < side_; ++y) {
      for (int x = 0; x < side_; ++x) {
        const float height = std::cos(phase + wave.x * static_cast<float>(x) + wave.y * static_cast<float>(y));
        for (float strength : wave.strength) {
          batch.features.push_back(height * strength + kNoise * random.Symmetric());
        }
      }
    }
  }
  return batch;
}

}  // namespace hotpack::train
