// Decides whether the driver's own pool serves a job that never repeats faster.
#pragma once

#include "runtime/process/arena_table.h"

namespace hotpack {

// Returns true if the driver serves the request, and the job's later ones, from now on. The program allocates `bytes`
// on `stream` (not capturing) with the driver's asynchronous interface, so hotpack may legally make the same calls.
// Measures the driver's pool when the engine asks for it: once in millions of requests of a job that was never hot.
bool DriverPoolIsFaster(ContextArena* arena, uint64_t bytes, CUstream stream);

}  // namespace hotpack
