// Whether a job that never repeats is better off with the driver's own pool.
#pragma once

#include "runtime/process/arena_table.h"

namespace hotpack {

// For an allocation of `bytes` that the program makes on `stream` (which is not capturing) with the driver's
// asynchronous interface, so that the same calls of ours are as legal. True: it is the driver's business from now on.
// Measures the driver's pool when the engine asks for it: once in millions of requests of a job that has never been
// hot.
bool DriverPoolIsFaster(ContextArena* arena, uint64_t bytes, CUstream stream);

}  // namespace hotpack
