// The blocks of weights and optimizer state.
#pragma once

#include <cstdint>
#include <vector>

namespace hotpack {

// Returns sizes from 2 KiB to 64 MiB whose sum is exactly `total`: many small ones (norms, biases) and few large ones
// (matrices, embeddings). The same total gives the same sizes. The last one may be below 2 KiB. Empty for 0.
std::vector<uint64_t> TensorSizes(uint64_t total);

}  // namespace hotpack
