// The program's own heap in bytes, counted by its operator new: what a table takes, allocator's rounding included. To
// be linked into one program as a whole (counted_heap.cc replaces the global operators). Thread-safe.
#pragma once

#include <cstdint>

namespace hotpack::bench {

struct HeapBytes {
  int64_t live = 0;
  int64_t peak = 0;  // since the beginning or ResetHeapPeak()
};

HeapBytes CountedHeap();
void ResetHeapPeak();

// Of the whole process, memory that was mapped included: resident bytes now, and the most since ResetResidentPeak().
// 0: the system does not say.
struct ResidentBytes {
  int64_t now = 0;
  int64_t peak = 0;
};
ResidentBytes Resident();
void ResetResidentPeak();

}  // namespace hotpack::bench
