// The driver functions of answers_client, by each way to them: linked, dlsym on a handle, RTLD_DEFAULT,
// cuGetProcAddress.
#pragma once

#include <cuda.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "tests/preload/driver_function.h"

#define CHECK(condition)                                                            \
  do {                                                                              \
    if (!(condition)) {                                                             \
      fprintf(stderr, "%s:%d: CHECK(%s) failed\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                                      \
    }                                                                               \
  } while (false)
#define OK(call) CHECK((call) == CUDA_SUCCESS)

using GraphInstantiateOld = CUresult(CUgraphExec*, CUgraph, CUgraphNode*, char*, size_t);
using LibraryLoad = CUresult(CUlibrary*, const void*, CUjit_option*, void**, unsigned, CUlibraryOption*, void**,
                             unsigned);
using LibraryLoadFile = CUresult(CUlibrary*, const char*, CUjit_option*, void**, unsigned, CUlibraryOption*, void**,
                                 unsigned);

// X(member, exported symbol, base name, version, type)
#define ANSWERS_FUNCTIONS(X)                                                                                       \
  X(Init, cuInit, "cuInit", 2000, CUresult(unsigned))                                                              \
  X(Retain, cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", 7000, CUresult(CUcontext*, CUdevice))            \
  X(SetCurrent, cuCtxSetCurrent, "cuCtxSetCurrent", 4000, CUresult(CUcontext))                                     \
  X(CtxCreate, cuCtxCreate_v2, "cuCtxCreate", 3020, CUresult(CUcontext*, unsigned, CUdevice))                      \
  X(Synchronize, cuCtxSynchronize, "cuCtxSynchronize", 2000, CUresult())                                           \
  X(Alloc, cuMemAlloc_v2, "cuMemAlloc", 3020, CUresult(CUdeviceptr*, size_t))                                      \
  X(Free, cuMemFree_v2, "cuMemFree", 3020, CUresult(CUdeviceptr))                                                  \
  X(AllocAsync, cuMemAllocAsync, "cuMemAllocAsync", 11020, CUresult(CUdeviceptr*, size_t, CUstream))               \
  X(FreeAsync, cuMemFreeAsync, "cuMemFreeAsync", 11020, CUresult(CUdeviceptr, CUstream))                           \
  X(AllocFromPool, cuMemAllocFromPoolAsync, "cuMemAllocFromPoolAsync", 11020,                                      \
    CUresult(CUdeviceptr*, size_t, CUmemoryPool, CUstream))                                                        \
  X(Memset, cuMemsetD8_v2, "cuMemsetD8", 3020, CUresult(CUdeviceptr, unsigned char, size_t))                       \
  X(DefaultPool, cuDeviceGetDefaultMemPool, "cuDeviceGetDefaultMemPool", 11020, CUresult(CUmemoryPool*, CUdevice)) \
  X(PoolCreate, cuMemPoolCreate, "cuMemPoolCreate", 11020, CUresult(CUmemoryPool*, const CUmemPoolProps*))         \
  X(PoolTrimTo, cuMemPoolTrimTo, "cuMemPoolTrimTo", 11020, CUresult(CUmemoryPool, size_t))                         \
  X(GetInfo, cuMemGetInfo_v2, "cuMemGetInfo", 3020, CUresult(size_t*, size_t*))                                    \
  X(Attribute, cuPointerGetAttribute, "cuPointerGetAttribute", 4000,                                               \
    CUresult(void*, CUpointer_attribute, CUdeviceptr))                                                             \
  X(Attributes, cuPointerGetAttributes, "cuPointerGetAttributes", 7000,                                            \
    CUresult(unsigned, CUpointer_attribute*, void**, CUdeviceptr))                                                 \
  X(RetainHandle, cuMemRetainAllocationHandle, "cuMemRetainAllocationHandle", 11000,                               \
    CUresult(CUmemGenericAllocationHandle*, void*))                                                                \
  X(IpcGet, cuIpcGetMemHandle, "cuIpcGetMemHandle", 4010, CUresult(CUipcMemHandle*, CUdeviceptr))                  \
  X(EnablePeer, cuCtxEnablePeerAccess, "cuCtxEnablePeerAccess", 4000, CUresult(CUcontext, unsigned))               \
  X(PoolSetAccess, cuMemPoolSetAccess, "cuMemPoolSetAccess", 11020,                                                \
    CUresult(CUmemoryPool, const CUmemAccessDesc*, size_t))                                                        \
  X(Create, cuMemCreate, "cuMemCreate", 10020,                                                                     \
    CUresult(CUmemGenericAllocationHandle*, size_t, const CUmemAllocationProp*, unsigned long long))               \
  X(ReleaseHandle, cuMemRelease, "cuMemRelease", 10020, CUresult(CUmemGenericAllocationHandle))                    \
  X(Managed, cuMemAllocManaged, "cuMemAllocManaged", 6000, CUresult(CUdeviceptr*, size_t, unsigned))               \
  X(Array, cuArrayCreate_v2, "cuArrayCreate", 3020, CUresult(CUarray*, const CUDA_ARRAY_DESCRIPTOR*))              \
  X(Array3D, cuArray3DCreate_v2, "cuArray3DCreate", 3020, CUresult(CUarray*, const CUDA_ARRAY3D_DESCRIPTOR*))      \
  X(Mipmapped, cuMipmappedArrayCreate, "cuMipmappedArrayCreate", 5000,                                             \
    CUresult(CUmipmappedArray*, const CUDA_ARRAY3D_DESCRIPTOR*, unsigned))                                         \
  X(ModuleLoad, cuModuleLoad, "cuModuleLoad", 2000, CUresult(CUmodule*, const char*))                              \
  X(ModuleData, cuModuleLoadData, "cuModuleLoadData", 2000, CUresult(CUmodule*, const void*))                      \
  X(ModuleDataEx, cuModuleLoadDataEx, "cuModuleLoadDataEx", 2010,                                                  \
    CUresult(CUmodule*, const void*, unsigned, CUjit_option*, void**))                                             \
  X(ModuleFat, cuModuleLoadFatBinary, "cuModuleLoadFatBinary", 2000, CUresult(CUmodule*, const void*))             \
  X(LibraryData, cuLibraryLoadData, "cuLibraryLoadData", 12000, LibraryLoad)                                       \
  X(LibraryFile, cuLibraryLoadFromFile, "cuLibraryLoadFromFile", 12000, LibraryLoadFile)                           \
  X(GraphCreate, cuGraphCreate, "cuGraphCreate", 10000, CUresult(CUgraph*, unsigned))                              \
  X(Instantiate, cuGraphInstantiate_v2, "cuGraphInstantiate", 11000, GraphInstantiateOld)                          \
  X(InstantiateFlags, cuGraphInstantiateWithFlags, "cuGraphInstantiateWithFlags", 11040,                           \
    CUresult(CUgraphExec*, CUgraph, unsigned long long))                                                           \
  X(InstantiateParams, cuGraphInstantiateWithParams, "cuGraphInstantiateWithParams", 12000,                        \
    CUresult(CUgraphExec*, CUgraph, CUDA_GRAPH_INSTANTIATE_PARAMS*))                                               \
  X(StreamCreate, cuStreamCreate, "cuStreamCreate", 2000, CUresult(CUstream*, unsigned))                           \
  X(BeginCapture, cuStreamBeginCapture_v2, "cuStreamBeginCapture", 10010, CUresult(CUstream, CUstreamCaptureMode)) \
  X(EndCapture, cuStreamEndCapture, "cuStreamEndCapture", 10000, CUresult(CUstream, CUgraph*))

struct AnswersApi {
#define ANSWERS_MEMBER(member, symbol, base, version, type) std::add_pointer_t<type> member = nullptr;
  ANSWERS_FUNCTIONS(ANSWERS_MEMBER)
#undef ANSWERS_MEMBER
};

// cuda.h makes macros of some names, so each is declared again under the exported symbol.
#define ANSWERS_LINK(member, symbol, base, version, type) \
  extern "C" std::type_identity_t<type> Linked_##member __asm__(#symbol);
ANSWERS_FUNCTIONS(ANSWERS_LINK)
#undef ANSWERS_LINK

inline AnswersApi GetAnswersApi(const char* way) {
  AnswersApi api;
  const bool link = strcmp(way, "link") == 0;
#define ANSWERS_GET(member, symbol, base, version, type)                                                           \
  api.member = link ? &Linked_##member                                                                             \
                    : reinterpret_cast<std::add_pointer_t<type>>(FindDriverFunction(way, #symbol, base, version)); \
  CHECK(api.member != nullptr);
  ANSWERS_FUNCTIONS(ANSWERS_GET)
#undef ANSWERS_GET
  return api;
}

// --- what the scenarios have in common -------------------------------------------------------------------------------

inline constexpr size_t kMiB = 1 << 20;
inline AnswersApi api;

inline CUcontext Start() {
  CUcontext context = nullptr;
  OK(api.Init(0));
  OK(api.Retain(&context, 0));
  OK(api.SetCurrent(context));
  return context;
}

inline CUdeviceptr Alloc(size_t bytes) {
  CUdeviceptr address = 0;
  OK(api.Alloc(&address, bytes));
  return address;
}

inline CUdeviceptr AllocAsync(size_t bytes) {
  CUdeviceptr address = 0;
  OK(api.AllocAsync(&address, bytes, nullptr));
  return address;
}

inline size_t Free() {
  size_t free = 0, total = 0;
  OK(api.GetInfo(&free, &total));
  CHECK(free <= total);
  return free;
}

// Hands back `bytes` of memory that is then idle in the arena.
inline void MakeIdle(size_t bytes) { OK(api.Free(Alloc(bytes))); }

inline CUmemAllocationProp Pinned() {
  CUmemAllocationProp prop = {};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  return prop;
}

inline CUresult Create(size_t bytes, CUmemGenericAllocationHandle* handle) {
  const CUmemAllocationProp prop = Pinned();
  return api.Create(handle, bytes, &prop, 0);
}

inline CUmemoryPool OwnPool() {
  CUmemPoolProps props = {};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CUmemoryPool pool = nullptr;
  OK(api.PoolCreate(&pool, &props));
  return pool;
}

// answers_memory.cc
void Fragments();
void Trim();
void Retry();
void RetryAll();
void OutOfMemory();
void OutOfMemoryAtTheEnd();
void OutOfMemoryOnPlan();
void Squeeze();
void Contexts();
void Capture();
