// How to write an entry point of the simulated driver:
//
//   SIMGPU_API cuThing_v2(int argument) {
//     SIMGPU_ENTER(cuThing);             counts the call, injects a failure, refuses before cuInit and after the end
//     ...                                `d` is the driver, its lock is held
//   }
#pragma once

#define __CUDA_API_VERSION_INTERNAL 1  // declares every variant under its exact name (_v2, _ptsz, _ptds)
#include <cuda.h>

#include "simgpu/driver/entry.h"
#include "simgpu/driver/state.h"

#define SIMGPU_API extern "C" __attribute__((visibility("default"))) CUresult CUDAAPI

// Counts and checks, without the lock. For calls that work at any time, also before cuInit.
#define SIMGPU_ENTER_ANYTIME(base)                           \
  static constinit ::simgpu::EntryPoint simgpu_entry(#base); \
  if (const int simgpu_early = simgpu_entry.Enter(false); simgpu_early != 0) return static_cast<CUresult>(simgpu_early)

#define SIMGPU_ENTER_UNLOCKED(base)                                         \
  static constinit ::simgpu::EntryPoint simgpu_entry(#base);                \
  if (const int simgpu_early = simgpu_entry.Enter(true); simgpu_early != 0) \
    return static_cast<CUresult>(simgpu_early);                             \
  [[maybe_unused]] ::simgpu::Driver& d = ::simgpu::TheDriver()

#define SIMGPU_ENTER(base)     \
  SIMGPU_ENTER_UNLOCKED(base); \
  std::lock_guard<std::mutex> simgpu_lock(d.mutex)

// The current context; returns the error if there is none.
#define SIMGPU_CONTEXT(name)                            \
  ::simgpu::Context* name = ::simgpu::CurrentContext(); \
  if (name == nullptr) return ::simgpu::NoContextError()

// For calls that need some context, but use none. SIMGPU_CONTEXTS=0: they need none.
#define SIMGPU_ANY_CONTEXT()                                                               \
  if (d.context_rule >= ContextRule::kDocumented && ::simgpu::CurrentContext() == nullptr) \
  return ::simgpu::NoContextError()

// For calls of virtual memory, whose documentation does not say whether they need one. PyTorch makes them in threads
// without. SIMGPU_CONTEXTS=strict: they need some context.
#define SIMGPU_STRICT_CONTEXT() \
  if (d.context_rule == ContextRule::kStrict && ::simgpu::CurrentContext() == nullptr) return ::simgpu::NoContextError()

// The stream of a handle; `variant` tells what NULL means.
#define SIMGPU_STREAM(name, handle, variant)                                                                   \
  ::simgpu::Stream* name = nullptr;                                                                            \
  if (const CUresult simgpu_bad = ::simgpu::FindStream(d, handle, variant, &name); simgpu_bad != CUDA_SUCCESS) \
  return simgpu_bad

// The same for calls that submit work to the stream, wait for it or query its work, which captures may forbid.
#define SIMGPU_WORK_STREAM(name, handle, variant)                                                            \
  SIMGPU_STREAM(name, handle, variant);                                                                      \
  if (const CUresult simgpu_forbidden = ::simgpu::CheckStreamUse(d, name); simgpu_forbidden != CUDA_SUCCESS) \
  return simgpu_forbidden

// For calls that a capture may forbid, by its mode and the thread's.
#define SIMGPU_UNSAFE() \
  if (const CUresult simgpu_unsafe = ::simgpu::CheckUnsafeCall(d); simgpu_unsafe != CUDA_SUCCESS) return simgpu_unsafe
#define SIMGPU_STRICTLY_UNSAFE()                                                                          \
  if (const CUresult simgpu_unsafe = ::simgpu::CheckStrictlyUnsafeCall(d); simgpu_unsafe != CUDA_SUCCESS) \
  return simgpu_unsafe
