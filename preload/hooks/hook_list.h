// Every driver function that hotpack hooks.
//
// 1. Two kinds. HOTPACK_HOOKS are answered, each by a C++ function. The functions of preload/hooks/work_list.h only
//    submit work; hooks of a few instructions watch them for the first use of each stream.
// 2. The exported symbol is the driver's own versioned name. Programs reach it by linking, by dlsym, or by
//    cuGetProcAddress with the base name, the CUDA version that introduced the signature, and the kind of default
//    stream (source: cudaTypedefs.h).
// 3. The 32-bit first versions (cuMemAlloc, cuMemFree, ... without _v2) have other signatures and are not hooked. A
//    look-up is substituted only when the driver's pointer is one of the variants listed here.
#pragma once

#include <cuda.h>

// X(exported symbol, base name, version, default stream: 1 legacy or any, 2 per thread, parameters)
// Each list is headed by the files of its hooks.

// memory_hooks.cc
#define HOTPACK_MEMORY_HOOKS(X)                                                                                \
  X(cuMemAlloc_v2, "cuMemAlloc", 3020, 1, (CUdeviceptr * address, size_t bytes))                               \
  X(cuMemAllocPitch_v2, "cuMemAllocPitch", 3020, 1,                                                            \
    (CUdeviceptr * address, size_t * pitch, size_t width, size_t height, unsigned int element))                \
  X(cuMemFree_v2, "cuMemFree", 3020, 1, (CUdeviceptr address))                                                 \
  X(cuMemGetAddressRange_v2, "cuMemGetAddressRange", 3020, 1,                                                  \
    (CUdeviceptr * base, size_t * size, CUdeviceptr address))                                                  \
  X(cuMemAllocAsync, "cuMemAllocAsync", 11020, 1, (CUdeviceptr * address, size_t bytes, CUstream stream))      \
  X(cuMemAllocAsync_ptsz, "cuMemAllocAsync", 11020, 2, (CUdeviceptr * address, size_t bytes, CUstream stream)) \
  X(cuMemAllocFromPoolAsync, "cuMemAllocFromPoolAsync", 11020, 1,                                              \
    (CUdeviceptr * address, size_t bytes, CUmemoryPool pool, CUstream stream))                                 \
  X(cuMemAllocFromPoolAsync_ptsz, "cuMemAllocFromPoolAsync", 11020, 2,                                         \
    (CUdeviceptr * address, size_t bytes, CUmemoryPool pool, CUstream stream))                                 \
  X(cuMemFreeAsync, "cuMemFreeAsync", 11020, 1, (CUdeviceptr address, CUstream stream))                        \
  X(cuMemFreeAsync_ptsz, "cuMemFreeAsync", 11020, 2, (CUdeviceptr address, CUstream stream))                   \
  X(cuDeviceSetMemPool, "cuDeviceSetMemPool", 11020, 1, (CUdevice device, CUmemoryPool pool))                  \
  X(cuMemSetMemPool, "cuMemSetMemPool", 13000, 1,                                                              \
    (CUmemLocation * location, CUmemAllocationType type, CUmemoryPool pool))

// query_hooks.cc, ipc_hooks.cc
#define HOTPACK_QUERY_HOOKS(X)                                                               \
  X(cuMemGetInfo_v2, "cuMemGetInfo", 3020, 1, (size_t * free, size_t * total))               \
  X(cuPointerGetAttribute, "cuPointerGetAttribute", 4000, 1,                                 \
    (void* data, CUpointer_attribute attribute, CUdeviceptr address))                        \
  X(cuPointerGetAttributes, "cuPointerGetAttributes", 7000, 1,                               \
    (unsigned int count, CUpointer_attribute* attributes, void** data, CUdeviceptr address)) \
  X(cuMemRetainAllocationHandle, "cuMemRetainAllocationHandle", 11000, 1,                    \
    (CUmemGenericAllocationHandle * handle, void* address))                                  \
  X(cuIpcGetMemHandle, "cuIpcGetMemHandle", 4010, 1, (CUipcMemHandle * handle, CUdeviceptr address))

// peer_hooks.cc, pool_hooks.cc, memory_hooks.cc
#define HOTPACK_PEER_HOOKS(X)                                                                      \
  X(cuMemPoolTrimTo, "cuMemPoolTrimTo", 11020, 1, (CUmemoryPool pool, size_t keep))                \
  X(cuMemPoolSetAttribute, "cuMemPoolSetAttribute", 11020, 1,                                      \
    (CUmemoryPool pool, CUmemPool_attribute attribute, void* value))                               \
  X(cuCtxEnablePeerAccess, "cuCtxEnablePeerAccess", 4000, 1, (CUcontext peer, unsigned int flags)) \
  X(cuMemPoolSetAccess, "cuMemPoolSetAccess", 11020, 1, (CUmemoryPool pool, const CUmemAccessDesc* map, size_t count))

// retry_hooks.cc. A sixth field: the parameters' names.
#define HOTPACK_RETRY_HOOKS(X)                                                                                        \
  X(cuMemCreate, "cuMemCreate", 10020, 1,                                                                             \
    (CUmemGenericAllocationHandle * handle, size_t bytes, const CUmemAllocationProp* prop, unsigned long long flags), \
    (handle, bytes, prop, flags))                                                                                     \
  X(cuMemAllocManaged, "cuMemAllocManaged", 6000, 1, (CUdeviceptr * address, size_t bytes, unsigned int flags),       \
    (address, bytes, flags))                                                                                          \
  X(cuMemPoolCreate, "cuMemPoolCreate", 11020, 1, (CUmemoryPool * pool, const CUmemPoolProps* props), (pool, props))  \
  X(cuArrayCreate_v2, "cuArrayCreate", 3020, 1, (CUarray * array, const CUDA_ARRAY_DESCRIPTOR* descriptor),           \
    (array, descriptor))                                                                                              \
  X(cuArray3DCreate_v2, "cuArray3DCreate", 3020, 1, (CUarray * array, const CUDA_ARRAY3D_DESCRIPTOR* descriptor),     \
    (array, descriptor))                                                                                              \
  X(cuMipmappedArrayCreate, "cuMipmappedArrayCreate", 5000, 1,                                                        \
    (CUmipmappedArray * array, const CUDA_ARRAY3D_DESCRIPTOR* descriptor, unsigned int levels),                       \
    (array, descriptor, levels))                                                                                      \
  X(cuModuleLoad, "cuModuleLoad", 2000, 1, (CUmodule * module, const char* file), (module, file))                     \
  X(cuModuleLoadData, "cuModuleLoadData", 2000, 1, (CUmodule * module, const void* image), (module, image))           \
  X(cuModuleLoadDataEx, "cuModuleLoadDataEx", 2010, 1,                                                                \
    (CUmodule * module, const void* image, unsigned int count, CUjit_option* options, void** values),                 \
    (module, image, count, options, values))                                                                          \
  X(cuModuleLoadFatBinary, "cuModuleLoadFatBinary", 2000, 1, (CUmodule * module, const void* image), (module, image)) \
  X(cuLibraryLoadData, "cuLibraryLoadData", 12000, 1,                                                                 \
    (CUlibrary * library, const void* code, CUjit_option* jit, void** jit_values, unsigned int jit_count,             \
     CUlibraryOption* options, void** values, unsigned int count),                                                    \
    (library, code, jit, jit_values, jit_count, options, values, count))                                              \
  X(cuLibraryLoadFromFile, "cuLibraryLoadFromFile", 12000, 1,                                                         \
    (CUlibrary * library, const char* file, CUjit_option* jit, void** jit_values, unsigned int jit_count,             \
     CUlibraryOption* options, void** values, unsigned int count),                                                    \
    (library, file, jit, jit_values, jit_count, options, values, count))                                              \
  X(cuGraphInstantiate, "cuGraphInstantiate", 10000, 1,                                                               \
    (CUgraphExec * executable, CUgraph graph, CUgraphNode * node, char* log, size_t bytes),                           \
    (executable, graph, node, log, bytes))                                                                            \
  X(cuGraphInstantiate_v2, "cuGraphInstantiate", 11000, 1,                                                            \
    (CUgraphExec * executable, CUgraph graph, CUgraphNode * node, char* log, size_t bytes),                           \
    (executable, graph, node, log, bytes))                                                                            \
  X(cuGraphInstantiateWithFlags, "cuGraphInstantiateWithFlags", 11040, 1,                                             \
    (CUgraphExec * executable, CUgraph graph, unsigned long long flags), (executable, graph, flags))                  \
  X(cuGraphInstantiateWithParams, "cuGraphInstantiateWithParams", 12000, 1,                                           \
    (CUgraphExec * executable, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS * parameters),                            \
    (executable, graph, parameters))                                                                                  \
  X(cuGraphInstantiateWithParams_ptsz, "cuGraphInstantiateWithParams", 12000, 2,                                      \
    (CUgraphExec * executable, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS * parameters),                            \
    (executable, graph, parameters))

// stream_hooks.cc
#define HOTPACK_STREAM_HOOKS(X)                                                                                   \
  X(cuStreamDestroy, "cuStreamDestroy", 2000, 1, (CUstream stream))                                               \
  X(cuStreamDestroy_v2, "cuStreamDestroy", 4000, 1, (CUstream stream))                                            \
  X(cuStreamBeginCapture, "cuStreamBeginCapture", 10000, 1, (CUstream stream))                                    \
  X(cuStreamBeginCapture_ptsz, "cuStreamBeginCapture", 10000, 2, (CUstream stream))                               \
  X(cuStreamBeginCapture_v2, "cuStreamBeginCapture", 10010, 1, (CUstream stream, CUstreamCaptureMode mode))       \
  X(cuStreamBeginCapture_v2_ptsz, "cuStreamBeginCapture", 10010, 2, (CUstream stream, CUstreamCaptureMode mode))  \
  X(cuStreamBeginCaptureToGraph, "cuStreamBeginCaptureToGraph", 12030, 1,                                         \
    (CUstream stream, CUgraph graph, const CUgraphNode* dependencies, const CUgraphEdgeData* edges, size_t count, \
     CUstreamCaptureMode mode))                                                                                   \
  X(cuStreamBeginCaptureToGraph_ptsz, "cuStreamBeginCaptureToGraph", 12030, 2,                                    \
    (CUstream stream, CUgraph graph, const CUgraphNode* dependencies, const CUgraphEdgeData* edges, size_t count, \
     CUstreamCaptureMode mode))                                                                                   \
  X(cuStreamEndCapture, "cuStreamEndCapture", 10000, 1, (CUstream stream, CUgraph * graph))                       \
  X(cuStreamEndCapture_ptsz, "cuStreamEndCapture", 10000, 2, (CUstream stream, CUgraph * graph))

// graph_copies.cc
#define HOTPACK_GRAPH_HOOKS(X)                                                                                         \
  X(cuGraphAddMemcpyNode, "cuGraphAddMemcpyNode", 10000, 1,                                                            \
    (CUgraphNode * node, CUgraph graph, const CUgraphNode* after, size_t count, const CUDA_MEMCPY3D* copy,             \
     CUcontext context))                                                                                               \
  X(cuGraphAddNode, "cuGraphAddNode", 12020, 1,                                                                        \
    (CUgraphNode * node, CUgraph graph, const CUgraphNode* after, size_t count, CUgraphNodeParams* params))            \
  X(cuGraphAddNode_v2, "cuGraphAddNode", 12030, 1,                                                                     \
    (CUgraphNode * node, CUgraph graph, const CUgraphNode* after, const CUgraphEdgeData* edges, size_t count,          \
     CUgraphNodeParams* params))                                                                                       \
  X(cuGraphExecMemcpyNodeSetParams, "cuGraphExecMemcpyNodeSetParams", 10020, 1,                                        \
    (CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D* copy, CUcontext context))                                \
  X(cuGraphExecNodeSetParams, "cuGraphExecNodeSetParams", 12020, 1,                                                    \
    (CUgraphExec exec, CUgraphNode node, CUgraphNodeParams * params))                                                  \
  X(cuGraphMemcpyNodeSetParams, "cuGraphMemcpyNodeSetParams", 10000, 1, (CUgraphNode node, const CUDA_MEMCPY3D* copy)) \
  X(cuGraphNodeSetParams, "cuGraphNodeSetParams", 12020, 1, (CUgraphNode node, CUgraphNodeParams * params))            \
  X(cuGraphMemcpyNodeGetParams, "cuGraphMemcpyNodeGetParams", 10000, 1, (CUgraphNode node, CUDA_MEMCPY3D * copy))

// stream_hooks.cc
#define HOTPACK_LAUNCH_HOOKS(X)                                                            \
  X(cuLaunchCooperativeKernelMultiDevice, "cuLaunchCooperativeKernelMultiDevice", 9000, 1, \
    (CUDA_LAUNCH_PARAMS * launches, unsigned int count, unsigned int flags))

// kernel_hooks.cc
#define HOTPACK_KERNEL_HOOKS(X)                                                                                      \
  X(cuModuleGetFunction, "cuModuleGetFunction", 2000, 1, (CUfunction * function, CUmodule module, const char* name)) \
  X(cuLibraryGetKernel, "cuLibraryGetKernel", 12000, 1, (CUkernel * kernel, CUlibrary library, const char* name))    \
  X(cuKernelGetFunction, "cuKernelGetFunction", 12000, 1, (CUfunction * function, CUkernel kernel))                  \
  X(cuModuleUnload, "cuModuleUnload", 2000, 1, (CUmodule module))                                                    \
  X(cuLibraryUnload, "cuLibraryUnload", 12000, 1, (CUlibrary library))

// context_hooks.cc
#define HOTPACK_CONTEXT_HOOKS(X)                                                                           \
  X(cuCtxCreate_v4, "cuCtxCreate", 12050, 1,                                                               \
    (CUcontext * context, CUctxCreateParams * parameters, unsigned int flags, CUdevice device))            \
  X(cuCtxCreate_v3, "cuCtxCreate", 11040, 1,                                                               \
    (CUcontext * context, CUexecAffinityParam * affinity, int count, unsigned int flags, CUdevice device)) \
  X(cuCtxCreate_v2, "cuCtxCreate", 3020, 1, (CUcontext * context, unsigned int flags, CUdevice device))    \
  X(cuCtxDestroy, "cuCtxDestroy", 2000, 1, (CUcontext context))                                            \
  X(cuCtxDestroy_v2, "cuCtxDestroy", 4000, 1, (CUcontext context))                                         \
  X(cuGreenCtxCreate, "cuGreenCtxCreate", 12040, 1,                                                        \
    (CUgreenCtx * green, CUdevResourceDesc resources, CUdevice device, unsigned int flags))                \
  X(cuGreenCtxDestroy, "cuGreenCtxDestroy", 12040, 1, (CUgreenCtx green))                                  \
  X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", 7000, 1, (CUcontext * context, CUdevice device)) \
  X(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease", 7000, 1, (CUdevice device))                    \
  X(cuDevicePrimaryCtxRelease_v2, "cuDevicePrimaryCtxRelease", 11000, 1, (CUdevice device))                \
  X(cuDevicePrimaryCtxReset, "cuDevicePrimaryCtxReset", 7000, 1, (CUdevice device))                        \
  X(cuDevicePrimaryCtxReset_v2, "cuDevicePrimaryCtxReset", 11000, 1, (CUdevice device))

// lookup_hooks.cc
#define HOTPACK_LOOKUP_HOOKS(X)                                           \
  X(cuGetProcAddress, "cuGetProcAddress", 11030, 1,                       \
    (const char* symbol, void** function, int version, cuuint64_t flags)) \
  X(cuGetProcAddress_v2, "cuGetProcAddress", 12000, 1,                    \
    (const char* symbol, void** function, int version, cuuint64_t flags, CUdriverProcAddressQueryResult* status))

#define HOTPACK_HOOKS(X)   \
  HOTPACK_MEMORY_HOOKS(X)  \
  HOTPACK_QUERY_HOOKS(X)   \
  HOTPACK_PEER_HOOKS(X)    \
  HOTPACK_RETRY_HOOKS(X)   \
  HOTPACK_STREAM_HOOKS(X)  \
  HOTPACK_GRAPH_HOOKS(X)   \
  HOTPACK_LAUNCH_HOOKS(X)  \
  HOTPACK_KERNEL_HOOKS(X)  \
  HOTPACK_CONTEXT_HOOKS(X) \
  HOTPACK_LOOKUP_HOOKS(X)
