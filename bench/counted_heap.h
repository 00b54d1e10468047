// The bytes of the program's own heap, counted by its operator new, with the allocator's rounding. Link it into one
// program as a whole, because counted_heap.cc replaces the global operators. Thread-safe.
#pragma once

#include <cstdint>

namespace hotpack::bench {

struct HeapBytes {
  int64_t live = 0;
  int64_t peak = 0;  // since the beginning or ResetHeapPeak()
};

HeapBytes CountedHeap();
void ResetHeapPeak();

// Resident bytes of the whole process, mapped memory included: now, and the most since ResetResidentPeak(). 0: the
// system does not report it.
struct ResidentBytes {
  int64_t now = 0;
  int64_t peak = 0;
};
ResidentBytes Resident();
void ResetResidentPeak();

}  // namespace hotpack::bench
