// Requests that are left to the driver because blocks like them are shared with other processes: memory of an arena
// cannot be exported by cuIpcGetMemHandle. Virtual memory has no such handles, and the handle of a plain arena would
// stand for the whole of it, so that whoever opens it would find other blocks at its start.
//
// Which ones these are shows only when a handle is asked for, and by then the block has its address. That call fails,
// as the driver's own does for virtual memory; from then on cuMemAlloc requests of the same size are the driver's.
// HOTPACK_IPC names sizes in advance.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace hotpack {

// How many sizes there may be; below 0: HOTPACK_IPC has not been read yet.
extern constinit std::atomic<int> outside_sizes;
bool IsOutsideSize(uint64_t bytes);

// Whether cuMemAlloc requests of `bytes` are left to the driver. Sizes count in units of 512. Lock-free; one load and
// one compare while there are none.
inline bool IsExcluded(uint64_t bytes) {
  return outside_sizes.load(std::memory_order_acquire) != 0 && IsOutsideSize(bytes);
}

// From now on they are. True if they were not before. False, and nothing done, when there are too many sizes.
bool KeepOutside(uint64_t bytes);

// All sizes there are, as HOTPACK_IPC takes them; as many as there is room for.
void ListOutside(char* text, size_t size);

}  // namespace hotpack
