// hotpack's C interface as an allocator.
#pragma once

#include <cstddef>

namespace hotpack::train {

// hotpack_malloc and hotpack_free, for work on `stream`. Both throw std::runtime_error. They report the blocks to the
// simulated device's checker, if there is one, because it does not see these calls otherwise.
void* HotpackMalloc(size_t bytes, void* stream);
void HotpackFree(void* pointer, void* stream);

}  // namespace hotpack::train
