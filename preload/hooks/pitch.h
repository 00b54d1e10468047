// The driver's pitch for cuMemAllocPitch. It depends on the width and the element size (cuda.h) by an unpublished rule.
#pragma once

#include <cuda.h>

#include <cstddef>

namespace hotpack {

using AllocPitch = CUresult (*)(CUdeviceptr*, size_t*, size_t, size_t, unsigned int);
using FreeMemory = CUresult (*)(CUdeviceptr);

// Writes to *pitch the bytes between rows that the driver would use. Learns them by allocating and freeing one row of
// this width, and remembers them by width and element size as long as they fit the cache. Returns false if the driver
// refuses. Thread-safe.
bool LearnPitch(AllocPitch allocate, FreeMemory free, size_t width, unsigned int element, size_t* pitch);

}  // namespace hotpack
