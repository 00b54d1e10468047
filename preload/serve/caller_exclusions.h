// Requests left to the driver because of the library that makes them. NCCL, UCX and NVSHMEM export their own buffers to
// other processes or to network devices, and memory of an arena has no such handles. NCCL tries this once. After a
// failure it uses no direct transfer for the rest of the run. So such requests go to the driver from the first one on.
//
// The library is found by the return address of the hook. NCCL contains its own CUDA runtime, so the address lies in
// NCCL. A library that uses a shared CUDA runtime cannot be recognised. Each return address is looked up once. If it
// lies in an earlier preload that passes requests on, the stack is walked past that preload.
#pragma once

#include <atomic>
#include <cstdint>

#include "preload/process/options.h"

namespace hotpack {

// The library names of HOTPACK_DRIVER_CALLERS, as patterns. "+..." as its value adds to them. libucm is not among them:
// it interposes cuMemAlloc and passes the program's own requests on.
inline constexpr char kDriverCallers[] = "libnccl.so*,libuct*.so*,libnvshmem*.so*";

// The return address from which a request was served last. Null while sizes are excluded too
// (preload/serve/ipc_exclusions.h).
extern constinit std::atomic<const void*> served_caller;

bool IsLeftToDriverSlow(const void* caller, uint64_t bytes);

// Returns whether a cuMemAlloc request of `bytes` by the code at `caller` is left to the driver, for its library or its
// size. Lock-free: one load and one compare while requests come from one place and no sizes are excluded.
inline bool IsLeftToDriver(const void* caller, uint64_t bytes) {
  return caller != served_caller.load(std::memory_order_relaxed) && IsLeftToDriverSlow(caller, bytes);
}

// Returns true if NCCL has called the hook that runs. NCCL reads CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE as the
// kind of the memory. "No" means mapped memory to it: it retains the allocation handle, and ncclCommRegister fails
// without one (NCCL's source: src/register/register.cc). Walks the stack.
bool CalledByNccl();

// Call after a size was excluded: from then on each request is checked for its size.
void ForgetServedCaller();

}  // namespace hotpack
