// HOTPACK=record: every request is the driver's, and what hotpack would have served is written down.
//
// The functions are called by allocate.cc, memory_hooks.cc and c_allocate.cc where a request has been found to be one
// that an arena would answer, so pools of the program's own, captures and sizes kept outside are not in the recording.
#pragma once

#include "preload/process/driver_access.h"
#include "preload/process/options.h"
#include "profiler/event.h"

namespace hotpack {

inline bool IsRecording() { return GetOptions().record; }

// A request of the calling thread that the driver is about to be asked for. The answer that follows on this thread is
// its.
void RecordRequest(CUcontext context, uint64_t bytes, CUstream stream) noexcept;

extern constinit __attribute__((tls_model("initial-exec"))) thread_local bool request_is_recorded;
void RecordGiven(CUresult result, CUdeviceptr address) noexcept;

// The driver's answer to an allocation: `address` counts if `result` says that it was given.
inline void RecordAnswer(CUresult result, const CUdeviceptr* address) noexcept {
  if (request_is_recorded) [[unlikely]]
    RecordGiven(result, result == CUDA_SUCCESS && address != nullptr ? *address : 0);
}

// A release that the driver is about to be asked for: before that, because another thread may get the address at once.
// Addresses that were not recorded are none of ours.
void RecordRelease(CUdeviceptr address, CUstream stream) noexcept;

// hotpack_step, hotpack_interrupt and hotpack_resume: in the recordings of all contexts.
void RecordMark(EventKind kind) noexcept;

// The context is gone, and its blocks with it.
void EndRecording(CUcontext context) noexcept;

// The process ends (the recordings are closed); or this is the child of a fork, which has none.
void EndRecordings() noexcept;
void ForgetRecordings();

}  // namespace hotpack
