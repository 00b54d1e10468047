#include "runtime/base/heap_count.h"

namespace hotpack {
namespace {
// Initial-exec: a preloaded library is loaded at start-up, so the access is one instruction and never allocates.
__attribute__((tls_model("initial-exec"))) thread_local uint64_t heap_allocations = 0;
}  // namespace

uint64_t HeapAllocationsOnThisThread() { return heap_allocations; }
void CountHeapAllocation() { ++heap_allocations; }

}  // namespace hotpack
