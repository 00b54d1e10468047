// hotpack's C interface as an allocator.
#pragma once

#include <cstddef>

namespace hotpack::train {

// hotpack_malloc and hotpack_free, for work on `stream`. Each throws std::runtime_error. The simulated device's
// checker, where there is one, is told of the blocks: it does not see these calls otherwise.
void* HotpackMalloc(size_t bytes, void* stream);
void HotpackFree(void* pointer, void* stream);

}  // namespace hotpack::train
