// Requests left to the driver because blocks like them are exported to other processes. cuIpcGetMemHandle cannot export
// memory of an arena: virtual memory has no such handles. The handle of a plain arena would stand for all of it, and
// the importer would find other blocks at its start.
//
// The need shows only at the export, when the block already has its address. That call fails, as the driver's own does
// for virtual memory. From then on the driver serves cuMemAlloc requests of the same size. HOTPACK_IPC names sizes in
// advance. Requests of communication libraries are left to the driver in any case (preload/serve/caller_exclusions.h).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace hotpack {

// The number of sizes. Below 0: HOTPACK_IPC has not been read yet.
extern constinit std::atomic<int> excluded_sizes;
bool IsExcludedSize(uint64_t bytes);

// Returns whether cuMemAlloc requests of `bytes` are left to the driver. Sizes count in units of 512 bytes. Lock-free:
// one load and one compare while there are no sizes.
inline bool IsExcluded(uint64_t bytes) {
  return excluded_sizes.load(std::memory_order_acquire) != 0 && IsExcludedSize(bytes);
}

// Excludes `bytes` from now on. Returns true if it was not excluded before. With too many sizes it does nothing and
// returns false.
bool ExcludeSize(uint64_t bytes);

// Writes all sizes in the format of HOTPACK_IPC, as many as fit.
void ListExcludedSizes(char* text, size_t size);

}  // namespace hotpack
