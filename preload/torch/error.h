// The exception for a request that cannot be served.
#pragma once

#include <cstddef>

namespace hotpack_torch {

// Throws c10::OutOfMemoryError, which Python sees as torch.OutOfMemoryError. Throws std::runtime_error if PyTorch's
// library has no such exception that can be made. The text begins as PyTorch's and ends with hotpack's diagnosis.
[[noreturn]] void ThrowOutOfMemory(size_t bytes, int device);

}  // namespace hotpack_torch
