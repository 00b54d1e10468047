// Copies between devices. The driver stages them for memory of cuMemAlloc. For virtual memory it does so only if the
// copy names both contexts (cuMemcpyPeerAsync). So copies that name none become such copies where an end is in an arena
// that the other device has no access to.
#pragma once

#include <cuda.h>

namespace hotpack {

// Called for each device of which the program makes or retains a context. From the second one on, copies are checked.
// Until then they take their usual way, at no cost. Thread-safe.
void NoteContextDevice(CUdevice device);

}  // namespace hotpack
