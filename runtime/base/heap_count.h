// Counts host heap allocations by thread: the engine's promise is none on script, and this is how it is checked.
#pragma once

#include <cstdint>

namespace hotpack {

// operator new calls of this library's own code on the calling thread so far. Zero for ever where the counting operator
// new (preload/process/counting_new.cc) is not linked. Async-signal-safe.
uint64_t HeapAllocationsOnThisThread();

// For the counting operator new only.
void CountHeapAllocation();

}  // namespace hotpack
