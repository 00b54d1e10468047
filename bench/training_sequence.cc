#include "bench/training_sequence.h"

#include <cstddef>
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

// Networks are built in stages: layers of one stage have equal sizes; from stage to stage outputs halve and gradients
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

}  // namespace hotpack::bench
