// HOTPACK=record: the driver serves every request, and hotpack records those that it would have served.
//
// Called by serve/allocate.cc, hooks/memory_hooks.cc and capi/allocate.cc for requests that an arena would serve. So
// recordings lack the program's own pools, captures and excluded sizes.
#pragma once

#include "preload/process/driver_access.h"
#include "preload/process/options.h"
#include "profiler/event.h"

namespace hotpack {

inline bool IsRecording() { return GetOptions().record; }

// Notes a request of the calling thread before the driver gets it. The next answer on this thread belongs to it.
void RecordRequest(CUcontext context, uint64_t bytes, CUstream stream) noexcept;

extern constinit __attribute__((tls_model("initial-exec"))) thread_local bool request_is_recorded;
void RecordGiven(CUresult result, CUdeviceptr address) noexcept;

// Records the driver's answer to an allocation. `address` counts only if `result` is success.
inline void RecordAnswer(CUresult result, const CUdeviceptr* address) noexcept {
  if (request_is_recorded) [[unlikely]]
    RecordGiven(result, result == CUDA_SUCCESS && address != nullptr ? *address : 0);
}

// Records a release. Call before the driver call, because another thread may get the address at once. Ignores addresses
// that were not recorded.
void RecordRelease(CUdeviceptr address, CUstream stream) noexcept;

// Records hotpack_step, hotpack_expect_steps, hotpack_interrupt and hotpack_resume in the recordings of all contexts.
void RecordMark(EventKind kind) noexcept;

// Ends the recording of a context that is gone, and with it the context's blocks.
void EndRecording(CUcontext context) noexcept;

// EndRecordings: the process ends, and all recordings are closed. ForgetRecordings: in a forked child, which has none.
void EndRecordings() noexcept;
void ForgetRecordings();

}  // namespace hotpack
