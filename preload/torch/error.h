// The exception for a request that cannot be served.
#pragma once

#include <cstddef>

namespace hotpack_torch {

// Throws c10::OutOfMemoryError, which Python sees as torch.OutOfMemoryError; std::runtime_error where PyTorch's library
// has none that can be made. The text begins as PyTorch's own does and ends with hotpack's diagnosis.
[[noreturn]] void ThrowOutOfMemory(size_t bytes, int device);

}  // namespace hotpack_torch
