// The blocks of weights and optimizer state.
#pragma once

#include <cstdint>
#include <vector>

namespace hotpack {

// Sizes from 2 KiB to 64 MiB that add up to `total` exactly: many small ones (norms, biases) and few large ones
// (matrices, embeddings), always the same for the same total. The last one may be smaller than 2 KiB. Empty for 0.
std::vector<uint64_t> TensorSizes(uint64_t total);

}  // namespace hotpack
