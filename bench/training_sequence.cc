#include "bench/training_sequence.h"

#include <cstddef>
#include <random>
#include <utility>

namespace hotpack::bench {
namespace {

class Builder {
 public:
  uint32_t Allocate(uint64_t bytes) {
    sequence_.calls.push_back({sequence_.slots, bytes});
    return sequence_.slots++;
  }
  void Release(uint32_t slot) { sequence_.calls.push_back({slot, 0}); }
  Sequence Take() { return std::move(sequence_); }

 private:
  Sequence sequence_;
};

// Networks are built in stages. Layers of one stage have equal sizes. From stage to stage outputs halve and gradients
// double, as in convolutional networks.
constexpr int kLayersPerStage = 16;
uint64_t OutputBytes(int layer) { return (uint64_t{8} << 20) >> (layer / kLayersPerStage % 4); }
uint64_t WorkspaceBytes(int layer) { return (uint64_t{4} << 20) >> (layer / kLayersPerStage % 4); }
uint64_t GradientBytes(int layer) { return (uint64_t{1} << 18) << (layer / kLayersPerStage % 4); }

}  // namespace

Sequence MakeTrainingSequence(int layers) {
  Builder builder;
  std::vector<uint32_t> outputs, gradients;
  for (int layer = 0; layer < layers; ++layer) {
    const uint32_t workspace = builder.Allocate(WorkspaceBytes(layer));
    outputs.push_back(builder.Allocate(OutputBytes(layer)));
    builder.Release(workspace);
  }
  for (int layer = layers - 1; layer >= 0; --layer) {
    const uint32_t workspace = builder.Allocate(WorkspaceBytes(layer));
    gradients.push_back(builder.Allocate(GradientBytes(layer)));
    builder.Release(workspace);
    builder.Release(outputs[static_cast<size_t>(layer)]);
  }
  for (uint32_t gradient : gradients) builder.Release(gradient);
  return builder.Take();
}

namespace {

constexpr uint32_t kShortLife = 6;  // most requests that a block lives for

class DrawnBuilder {
 public:
  uint32_t Allocate() {
    sequence_.calls.push_back({sequence_.slots, 512 * (1 + random_() % 64)});
    return sequence_.slots++;
  }
  void Release(uint32_t slot) { sequence_.calls.push_back({slot, 0}); }
  uint64_t Draw(uint64_t below) { return random_() % below; }
  uint32_t slots() const { return sequence_.slots; }
  Sequence Take() { return std::move(sequence_); }

 private:
  std::mt19937_64 random_{1};
  Sequence sequence_;
};

// Like MakeTrainingSequence: four requests per layer, one of them an output that lives until its backward pass.
void BuildNested(uint32_t n, DrawnBuilder* builder) {
  const uint32_t layers = n / 4;
  std::vector<uint32_t> outputs, gradients;
  for (uint32_t layer = 0; layer < layers; ++layer) {
    const uint32_t workspace = builder->Allocate();
    outputs.push_back(builder->Allocate());
    builder->Release(workspace);
  }
  for (uint32_t layer = layers; layer-- > 0;) {
    const uint32_t workspace = builder->Allocate();
    gradients.push_back(builder->Allocate());
    builder->Release(workspace);
    builder->Release(outputs[layer]);
  }
  while (builder->slots() < n) gradients.push_back(builder->Allocate());
  for (uint32_t gradient : gradients) builder->Release(gradient);
}

void BuildShort(uint32_t n, DrawnBuilder* builder) {
  std::vector<std::vector<uint32_t>> due(kShortLife);  // by request modulo kShortLife: blocks to release before it
  for (uint32_t request = 0; request < n; ++request) {
    std::vector<uint32_t>& now = due[request % kShortLife];
    for (uint32_t slot : now) builder->Release(slot);
    now.clear();
    const uint64_t life = 1 + builder->Draw(kShortLife);  // kShortLife: this list's next turn
    due[(request + life) % kShortLife].push_back(builder->Allocate());
  }
  for (uint32_t i = 0; i < kShortLife; ++i) {
    for (uint32_t slot : due[(n + i) % kShortLife]) builder->Release(slot);
  }
}

}  // namespace

Sequence MakeIteration(uint32_t n, Lives lives) {
  DrawnBuilder builder;
  lives == Lives::kNested ? BuildNested(n, &builder) : BuildShort(n, &builder);
  return builder.Take();
}

}  // namespace hotpack::bench
