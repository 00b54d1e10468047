// SuperNeurons (Wang et al. 2018, "Dynamic GPU memory management for training deep neural networks"): liveness, a cache
// of tensors backed by the host, and cost-aware recomputation.
//
//   checkpoints   results of heavy operators (convolutions, fully connected), and of operators in place on them. Copied
//                 to the host when memory is short, the least recently used first
//   the rest      pooling, activation, normalization: recomputed from the checkpoint before
//   segment       the operators between two checkpoints. Kept once recomputed, unless it is larger than the largest
//                 operator: then it is recomputed for each of its gradients
#pragma once

#include "absl/status/statusor.h"
#include "remat/core/schedule.h"
#include "remat/core/simulator.h"
#include "remat/core/values.h"

namespace hotpack::remat {

enum class SuperNeuronsMode : uint8_t { kRecompute, kSwap, kBoth };

// Returns the plan of one mode. Memory above `budget` bytes goes to the host. Two differences from the paper's:
//  1. A copy back begins in time for its use (remat/core/schedule_builder.h), not at the gradient of the previous
//     checkpoint. This is never slower.
//  2. Contents are swapped at most once in a gap.
Schedule ScheduleWithSuperNeurons(const Graph& graph, const Values& values, SuperNeuronsMode mode, Bytes budget,
                                  const Machine& machine = {});

// Returns the fastest of the three modes whose live peak is at most `budget` bytes, or ResourceExhausted with their
// least live peak. A few simulations. Thread-safe.
absl::StatusOr<Schedule> ScheduleBySuperNeurons(const Graph& graph, const Values& values, Bytes budget,
                                                const Machine& machine = {});

}  // namespace hotpack::remat
