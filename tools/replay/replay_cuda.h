// The real (or simulated) device, reached as a program reaches it: libraries are loaded at run time. So the hotpack
// command itself needs no CUDA, and a preloaded library sees every call.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "tools/replay/replay_device.h"

namespace hotpack {

enum class ReplayApi {
  kMalloc,  // cudaMalloc, cudaFree
  kAsync,   // cudaMallocAsync, cudaFreeAsync
  kDriver,  // cuMemAlloc, cuMemFree
};

// Opens device 0 of this machine. The error is one line: a library or a function is missing, or there is no device.
// `touch`: Fill and Check will be called. They launch a kernel. If its module cannot be loaded, they set a few bytes at
// both ends, and Check detects nothing.
absl::StatusOr<std::unique_ptr<ReplayDevice>> OpenCudaDevice(ReplayApi api, bool touch);

// Returns hotpack's C functions if a preloaded library exports them. `marks`: step, expect, interrupt, resume; `wait`:
// wait_plan.
ReplayHooks FindHooks(bool marks, bool wait);

}  // namespace hotpack
