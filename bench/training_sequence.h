// The allocations and releases of one generated training step, for the benchmarks of the serving path.
#pragma once

#include <cstdint>
#include <vector>

namespace hotpack::bench {

// One call: an allocation of `bytes` for `slot`, or (bytes == 0) the release of what `slot` holds.
struct Call {
  uint32_t slot = 0;
  uint64_t bytes = 0;
};

struct Sequence {
  std::vector<Call> calls;
  uint32_t slots = 0;  // one a request
};

// A step of a network with `layers` layers: each keeps its output until its backward pass, uses a workspace while it
// runs, and leaves a gradient until the step's end. Four requests a layer; nothing is carried. With 64 layers a block
// has 1.5 spatial predecessors on average; recorded training steps have 1.2 to 1.35.
Sequence MakeTrainingSequence(int layers);

enum class Lives : uint8_t {
  kNested,  // outputs live until the backward pass of their layer: a block meets up to half of the others
  kShort,   // a block lives for a few requests: time steps of a recurrent net, a generated loop
};

// `n` requests (at least 4), each released in the iteration; sizes of 512 bytes to 32 KiB, drawn, so that a million
// blocks fit a device. No part of it repeats. O(n).
Sequence MakeIteration(uint32_t n, Lives lives);

}  // namespace hotpack::bench
