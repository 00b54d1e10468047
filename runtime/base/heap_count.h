// Counts host heap allocations by thread: checks the engine's promise that it makes none on script.
#pragma once

#include <cstdint>

namespace hotpack {

// Returns the operator new calls of this library's own code on the calling thread so far. Always zero if the counting
// operator new (preload/process/counting_new.cc) is not linked. Async-signal-safe.
uint64_t HeapAllocationsOnThisThread();

// For the counting operator new only.
void CountHeapAllocation();

}  // namespace hotpack
