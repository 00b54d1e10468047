// Which device can use which memory.
//
// cuMemAlloc's memory is for its own device and, after cuCtxEnablePeerAccess, for the enabling context. Copies between
// devices use it in any case: the driver stages them. Memory of a pool and of cuMemMap is for the devices that
// cuMemPoolSetAccess and cuMemSetAccess name. A copy that is not one of cuMemcpyPeer's is refused elsewhere.
#pragma once

#include "simgpu/driver/state.h"

namespace simgpu {

// Returns whether the machine lets `device` use memory of `peer`, which is another device.
bool CanAccessPeer(const Driver& d, int device, int peer);

// Returns whether the copy engine of the context's device can use [address, address + bytes). True for host memory and
// for addresses without memory, whose errors are found elsewhere. O(mappings).
bool CopyReaches(Driver& d, const Context* context, uint64_t address, uint64_t bytes);

// Reports `address` if a kernel in the context must not use it, because it is another device's memory.
void CheckKernelReaches(Driver& d, const Context* context, uint64_t address, const char* what);

// Returns the error of a cuMemcpyPeer whose end at `address` is stated to be memory of `context`.
CUresult CheckPeerEnd(Driver& d, CUcontext context, uint64_t address);

}  // namespace simgpu
