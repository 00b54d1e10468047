// The allocations and releases of one generated training step, for the benchmarks of the serving path.
#pragma once

#include <cstdint>
#include <vector>

namespace hotpack::bench {

// One call: an allocation of `bytes` for `slot`, or (bytes == 0) the release of the block in `slot`.
struct Call {
  uint32_t slot = 0;
  uint64_t bytes = 0;
};

struct Sequence {
  std::vector<Call> calls;
  uint32_t slots = 0;  // one per request
};

// Returns a step of a network with `layers` layers, with four requests per layer. Each layer keeps its output until its
// backward pass, uses a workspace while it runs, and leaves a gradient until the step's end. Nothing is carried. With
// 64 layers a block has 1.5 spatial predecessors on average. Recorded training steps have 1.2 to 1.35.
Sequence MakeTrainingSequence(int layers);

enum class Lives : uint8_t {
  kNested,  // outputs live until their layer's backward pass: a block meets up to half of the others
  kShort,   // a block lives for a few requests: time steps of a recurrent net, a generated loop
};

// Returns `n` requests (at least 4), each released within the iteration. Sizes are drawn from 512 bytes to 32 KiB, so
// that a million blocks fit a device. No part of it repeats. O(n).
Sequence MakeIteration(uint32_t n, Lives lives);

}  // namespace hotpack::bench
