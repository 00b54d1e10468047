// Copies between devices. The driver stages them for memory of cuMemAlloc. For virtual memory it does so only if the
// copy names both contexts (cuMemcpyPeerAsync). So copies that name none become such copies where an end is in an arena
// that the other device has no access to.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace hotpack {

// Called for each device of which the program makes or retains a context. From the second one on, copies are checked.
// Until then they take their usual way, at no cost. Thread-safe.
void NoteContextDevice(CUdevice device);

// How a copy can be made.
enum class CopyWay : uint8_t {
  kPlain,
  kRetry,  // plain. If the driver refuses, the stream may be a third device's: again by the contexts
  kPeer,
};
// Returns the way of a copy between device memory, and for the other ways than kPlain the same copy with its contexts.
// Calls the driver only for memory that is in no arena. Thread-safe. May throw bad_alloc.
CopyWay FindCopyWay(const CUDA_MEMCPY3D& copy, CUDA_MEMCPY3D_PEER* named);
// Counts a copy that names its contexts (peer_copies).
void CountPeerCopy(const CUDA_MEMCPY3D_PEER& named);

}  // namespace hotpack
