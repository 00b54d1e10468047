// Generated instances of any size: one for each seed, the same on every machine.
#pragma once

#include <cstdint>

#include "packer/types.h"

namespace hotpack::bench {

// Returns a forward and backward pass over n/3 layers: outputs that nest like brackets, gradients, and workspaces of
// one layer. The rest of the n blocks are more workspaces. O(n).
Instance TrainingInstance(int64_t n, uint64_t seed = 1);

// Returns n blocks with log-uniform lives of 1 to n/10 clock values and sizes of 512 bytes to 2 MiB, begun anywhere in
// n clock values. They are harder than a training job's. O(n).
Instance RandomInstance(int64_t n, uint64_t seed = 1);

// Returns few huge blocks between thousands of small ones that last. One block of 2,000 (four at least) has 32 to
// 256 MiB and lives for up to an eighth of the time. The others have 512 bytes to 256 KiB and live for a tenth of the
// time to all of it. O(n).
Instance LastingInstance(int64_t n, uint64_t seed = 1);

// Returns a rectangle cut into n ≥ 1 blocks. Its height is the load at every moment. So the placement that was cut
// reaches the lower bound, and hardly any other does. Harder still. O(n).
Instance CutInstance(int64_t n, uint64_t seed = 1);

// As CutInstance, but of three drawn pieces the largest is cut. So the n ≥ 1 blocks are of similar areas, and many more
// placements nearly fit: the hardest of all. O(n).
Instance EvenlyCutInstance(int64_t n, uint64_t seed = 1);

}  // namespace hotpack::bench
