// A test program's ways to the driver: the same functions by each of them.
#pragma once

#include <cuda.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "tests/preload/stub_driver.h"

#define CHECK(condition)                                                            \
  do {                                                                              \
    if (!(condition)) {                                                             \
      fprintf(stderr, "%s:%d: CHECK(%s) failed\n", __FILE__, __LINE__, #condition); \
      _Exit(1);                                                                     \
    }                                                                               \
  } while (false)
#define OK(call) CHECK((call) == CUDA_SUCCESS)

using LaunchFunction = CUresult(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                CUstream, void**, void**);
using AllocAsyncFunction = CUresult(CUdeviceptr*, size_t, CUstream);
using FreeAsyncFunction = CUresult(CUdeviceptr, CUstream);
using PoolFunction = CUresult(CUdeviceptr*, size_t, CUmemoryPool, CUstream);

// X(member, exported symbol, base name, version, stream kind, type)
#define CLIENT_FUNCTIONS(X)                                                                                           \
  X(Init, cuInit, "cuInit", 2000, 1, CUresult(unsigned))                                                              \
  X(Retain, cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", 7000, 1, CUresult(CUcontext*, CUdevice))            \
  X(ReleasePrimary, cuDevicePrimaryCtxRelease_v2, "cuDevicePrimaryCtxRelease", 11000, 1, CUresult(CUdevice))          \
  X(ResetPrimary, cuDevicePrimaryCtxReset_v2, "cuDevicePrimaryCtxReset", 11000, 1, CUresult(CUdevice))                \
  X(CtxCreate, cuCtxCreate_v2, "cuCtxCreate", 3020, 1, CUresult(CUcontext*, unsigned, CUdevice))                      \
  X(CtxDestroy, cuCtxDestroy_v2, "cuCtxDestroy", 4000, 1, CUresult(CUcontext))                                        \
  X(SetCurrent, cuCtxSetCurrent, "cuCtxSetCurrent", 4000, 1, CUresult(CUcontext))                                     \
  X(GetCurrent, cuCtxGetCurrent, "cuCtxGetCurrent", 4000, 1, CUresult(CUcontext*))                                    \
  X(OldAlloc, cuMemAlloc, "cuMemAlloc", 2000, 1, CUresult(unsigned*, unsigned))                                       \
  X(Alloc, cuMemAlloc_v2, "cuMemAlloc", 3020, 1, CUresult(CUdeviceptr*, size_t))                                      \
  X(AllocPitch, cuMemAllocPitch_v2, "cuMemAllocPitch", 3020, 1,                                                       \
    CUresult(CUdeviceptr*, size_t*, size_t, size_t, unsigned))                                                        \
  X(Free, cuMemFree_v2, "cuMemFree", 3020, 1, CUresult(CUdeviceptr))                                                  \
  X(Range, cuMemGetAddressRange_v2, "cuMemGetAddressRange", 3020, 1, CUresult(CUdeviceptr*, size_t*, CUdeviceptr))    \
  X(AllocAsync, cuMemAllocAsync, "cuMemAllocAsync", 11020, 1, AllocAsyncFunction)                                     \
  X(AllocAsyncPtsz, cuMemAllocAsync_ptsz, "cuMemAllocAsync", 11020, 2, AllocAsyncFunction)                            \
  X(FreeAsync, cuMemFreeAsync, "cuMemFreeAsync", 11020, 1, FreeAsyncFunction)                                         \
  X(FreeAsyncPtsz, cuMemFreeAsync_ptsz, "cuMemFreeAsync", 11020, 2, FreeAsyncFunction)                                \
  X(AllocFromPool, cuMemAllocFromPoolAsync, "cuMemAllocFromPoolAsync", 11020, 1, PoolFunction)                        \
  X(AllocFromPoolPtsz, cuMemAllocFromPoolAsync_ptsz, "cuMemAllocFromPoolAsync", 11020, 2, PoolFunction)               \
  X(DefaultPool, cuDeviceGetDefaultMemPool, "cuDeviceGetDefaultMemPool", 11020, 1, CUresult(CUmemoryPool*, CUdevice)) \
  X(SetPool, cuDeviceSetMemPool, "cuDeviceSetMemPool", 11020, 1, CUresult(CUdevice, CUmemoryPool))                    \
  X(ModuleDataEx, cuModuleLoadDataEx, "cuModuleLoadDataEx", 2010, 1,                                                  \
    CUresult(CUmodule*, const void*, unsigned, CUjit_option*, void**))                                                \
  X(StreamCreate, cuStreamCreate, "cuStreamCreate", 2000, 1, CUresult(CUstream*, unsigned))                           \
  X(StreamDestroy, cuStreamDestroy_v2, "cuStreamDestroy", 4000, 1, CUresult(CUstream))                                \
  X(BeginCapture, cuStreamBeginCapture_v2, "cuStreamBeginCapture", 10010, 1, CUresult(CUstream, CUstreamCaptureMode)) \
  X(EndCapture, cuStreamEndCapture, "cuStreamEndCapture", 10000, 1, CUresult(CUstream, CUgraph*))                     \
  X(BeginCapturePtsz, cuStreamBeginCapture_v2_ptsz, "cuStreamBeginCapture", 10010, 2,                                 \
    CUresult(CUstream, CUstreamCaptureMode))                                                                          \
  X(EndCapturePtsz, cuStreamEndCapture_ptsz, "cuStreamEndCapture", 10000, 2, CUresult(CUstream, CUgraph*))            \
  X(Launch, cuLaunchKernel, "cuLaunchKernel", 4000, 1, LaunchFunction)                                                \
  X(LaunchPtsz, cuLaunchKernel_ptsz, "cuLaunchKernel", 7000, 2, LaunchFunction)

struct Api {
#define CLIENT_MEMBER(member, symbol, base, version, stream, type) std::add_pointer_t<type> member = nullptr;
  CLIENT_FUNCTIONS(CLIENT_MEMBER)
#undef CLIENT_MEMBER
};

// `way`: link (bound by the dynamic linker), dlsym, dlvsym (a driver with symbol versions), default (RTLD_DEFAULT),
// proc (cuGetProcAddress_v2), oldproc (cuGetProcAddress with four parameters).
Api GetApi(const char* way);
