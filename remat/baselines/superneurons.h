// SuperNeurons (Wang et al. 2018, "Dynamic GPU memory management for training deep neural networks"): liveness, a cache
// of tensors that goes to the host, and cost-aware recomputation.
//
//   heavy (convolutions, fully connected), and what works in place on their results: checkpoints. Copied to the host
//   when memory is short, the least recently used first. the rest (pooling, activation, normalization): computed again,
//   from the checkpoint before it. A segment between two checkpoints is kept once it was computed again, unless it is
//   larger than the largest operator: then it is computed again for each of its gradients.
#pragma once

#include "absl/status/statusor.h"
#include "remat/core/schedule.h"
#include "remat/core/simulator.h"
#include "remat/core/values.h"

namespace hotpack::remat {

enum class SuperNeuronsMode : uint8_t { kRecompute, kSwap, kBoth };

// The plan of one mode. `budget`: what is above it goes to the host. Differs from the paper's: a copy back begins in
// time for its use (remat/core/schedule_builder.h) instead of at the gradient of the checkpoint before, which is never
// slower; contents are swapped at most once in a gap.
Schedule ScheduleWithSuperNeurons(const Graph& graph, const Values& values, SuperNeuronsMode mode, Bytes budget,
                                  const Machine& machine = {});

// The fastest of the three modes whose live peak is at most `budget` bytes. ResourceExhausted with the least live peak
// of them. A few simulations. Thread-safe.
absl::StatusOr<Schedule> ScheduleBySuperNeurons(const Graph& graph, const Values& values, Bytes budget,
                                                const Machine& machine = {});

}  // namespace hotpack::remat
