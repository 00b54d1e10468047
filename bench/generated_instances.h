// Generated instances of any size, the same on every machine.
#pragma once

#include <cstdint>

#include "packer/types.h"

namespace hotpack::bench {

// Returns a forward and backward pass over n/3 layers: outputs that nest like brackets, gradients, and workspaces of
// one layer. The rest of the n blocks are more workspaces. O(n).
Instance TrainingInstance(int64_t n);

// Returns n blocks with log-uniform lives of 1 to n/10 clock values and sizes of 512 bytes to 2 MiB, begun anywhere in
// n clock values. They are harder than a training job's. O(n).
Instance RandomInstance(int64_t n);

// Returns a rectangle cut into n ≥ 1 blocks. Its height is the load at every moment. So the placement that was cut
// reaches the lower bound, and hardly any other does. Harder still. O(n).
Instance CutInstance(int64_t n);

}  // namespace hotpack::bench
