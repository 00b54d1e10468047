// The driver's own pitch for cuMemAllocPitch: it depends on the width and the element size (cuda.h), and only the
// driver knows how.
#pragma once

#include <cuda.h>

#include <cstddef>

namespace hotpack {

using AllocPitch = CUresult (*)(CUdeviceptr*, size_t*, size_t, size_t, unsigned int);
using FreeMemory = CUresult (*)(CUdeviceptr);

// *pitch: bytes between rows that the driver would use, learnt by allocating one row of this width and giving it back;
// remembered, so that this happens once a width and element size (as long as they fit the cache). False: the driver
// refuses. Thread-safe.
bool LearnPitch(AllocPitch allocate, FreeMemory free, size_t width, unsigned int element, size_t* pitch);

}  // namespace hotpack
