// Devices, and the names of errors.
#include <cstring>

#include "simgpu/runtime/runtime.h"

using namespace simgpu_runtime;

namespace {

int Attribute(CUdevice_attribute attribute, int device) {
  int value = 0;
  Driver().cuDeviceGetAttribute(&value, attribute, device);
  return value;
}

void FillProperties(cudaDeviceProp* p, int device) {
  const DriverTable& drv = Driver();
  drv.cuDeviceGetName(p->name, sizeof p->name, device);
  drv.cuDeviceGetUuid(reinterpret_cast<CUuuid*>(&p->uuid), device);
  drv.cuDeviceTotalMem(&p->totalGlobalMem, device);
  const auto get = [device](CUdevice_attribute attribute) { return Attribute(attribute, device); };
  p->sharedMemPerBlock = get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
  p->sharedMemPerBlockOptin = get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  p->sharedMemPerMultiprocessor = get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  p->reservedSharedMemPerBlock = get(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
  p->regsPerBlock = get(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
  p->regsPerMultiprocessor = get(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
  p->warpSize = get(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  p->memPitch = get(CU_DEVICE_ATTRIBUTE_MAX_PITCH);
  p->maxThreadsPerBlock = get(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  p->maxThreadsDim[0] = get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X);
  p->maxThreadsDim[1] = get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y);
  p->maxThreadsDim[2] = get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z);
  p->maxGridSize[0] = get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
  p->maxGridSize[1] = get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y);
  p->maxGridSize[2] = get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z);
  p->totalConstMem = get(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
  p->major = get(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  p->minor = get(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  p->textureAlignment = get(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
  p->texturePitchAlignment = get(CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT);
  p->surfaceAlignment = get(CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT);
  p->multiProcessorCount = get(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  p->maxThreadsPerMultiProcessor = get(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
  p->maxBlocksPerMultiProcessor = get(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
  p->memoryBusWidth = get(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
  p->l2CacheSize = get(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  p->asyncEngineCount = get(CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT);
  p->canMapHostMemory = get(CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY);
  p->concurrentKernels = get(CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS);
  p->unifiedAddressing = get(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING);
  p->managedMemory = get(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY);
  p->concurrentManagedAccess = get(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS);
  p->streamPrioritiesSupported = get(CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED);
  p->globalL1CacheSupported = get(CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED);
  p->localL1CacheSupported = get(CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED);
  p->computePreemptionSupported = get(CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED);
  p->cooperativeLaunch = get(CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH);
  p->memoryPoolsSupported = get(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
  p->hostRegisterSupported = get(CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED);
  p->pciBusID = get(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID);
}

}  // namespace

CUDART_API cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (Driver().status != CUDA_SUCCESS) return Set(Driver().status);
  int count = 0;
  Driver().cuDeviceGetCount(&count);
  if (properties == nullptr) return Set(cudaErrorInvalidValue);
  if (device < 0 || device >= count) return Set(cudaErrorInvalidDevice);
  memset(static_cast<void*>(properties), 0, sizeof *properties);
  FillProperties(properties, device);
  return cudaSuccess;
}

CUDART_API cudaGetDeviceCount(int* count) {
  if (count == nullptr) return Set(cudaErrorInvalidValue);
  *count = 0;
  if (Driver().status != CUDA_SUCCESS) return Set(Driver().status);
  return Set(Driver().cuDeviceGetCount(count));
}

CUDART_API cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (Driver().status != CUDA_SUCCESS) return Set(Driver().status);
  return Set(Driver().cuDeviceGetAttribute(value, static_cast<CUdevice_attribute>(attribute), device));
}

CUDART_API cudaDeviceSynchronize() {
  CUDART_READY();
  return Set(drv.cuCtxSynchronize());
}

CUDART_API cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  CUDART_READY();
  return Set(drv.cuCtxGetStreamPriorityRange(least, greatest));
}

CUDART_API cudaDeviceSetLimit(cudaLimit limit, size_t value) {
  CUDART_READY();
  return Set(drv.cuCtxSetLimit(static_cast<CUlimit>(limit), value));
}

CUDART_API cudaDeviceGetLimit(size_t* value, cudaLimit limit) {
  CUDART_READY();
  return Set(drv.cuCtxGetLimit(value, static_cast<CUlimit>(limit)));
}

CUDART_API cudaDeviceGetPCIBusId(char* id, int length, int device) {
  CUDART_READY();
  return Set(drv.cuDeviceGetPCIBusId(id, length, device));
}

CUDART_API cudaDeviceGetByPCIBusId(int* device, const char* id) {
  CUDART_READY();
  return Set(drv.cuDeviceGetByPCIBusId(device, id));
}

CUDART_API cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  CUDART_READY();
  return Set(drv.cuDeviceCanAccessPeer(can, device, peer));
}

CUDART_API cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  CUDART_READY();
  CUcontext context = nullptr;
  if (const CUresult status = drv.cuDevicePrimaryCtxRetain(&context, peer); status != CUDA_SUCCESS) return Set(status);
  return Set(drv.cuCtxEnablePeerAccess(context, flags));
}

CUDART_API cudaDeviceDisablePeerAccess(int peer) {
  CUDART_READY();
  CUcontext context = nullptr;
  if (const CUresult status = drv.cuDevicePrimaryCtxRetain(&context, peer); status != CUDA_SUCCESS) return Set(status);
  return Set(drv.cuCtxDisablePeerAccess(context));
}

CUDART_FORWARD(cudaDeviceGetP2PAttribute, cuDeviceGetP2PAttribute,
               (int* value, cudaDeviceP2PAttr attribute, int from, int to),
               (value, static_cast<CUdevice_P2PAttribute>(attribute), from, to))
CUDART_FORWARD(cudaDeviceSetCacheConfig, cuCtxSetCacheConfig, (cudaFuncCache config),
               (static_cast<CUfunc_cache>(config)))
CUDART_FORWARD(cudaDeviceGetCacheConfig, cuCtxGetCacheConfig, (cudaFuncCache * config),
               (reinterpret_cast<CUfunc_cache*>(config)))
CUDART_FORWARD(cudaCtxResetPersistingL2Cache, cuCtxResetPersistingL2Cache, (), ())

// All devices are equal, so any is the best match.
CUDART_API cudaChooseDevice(int* device, const cudaDeviceProp* wanted) {
  if (device == nullptr || wanted == nullptr) return Set(cudaErrorInvalidValue);
  if (Driver().status != CUDA_SUCCESS) return Set(Driver().status);
  *device = 0;
  return cudaSuccess;
}

CUDART_API cudaSetDeviceFlags(unsigned flags) {
  if (Driver().status != CUDA_SUCCESS) return Set(Driver().status);
  return Set(Driver().cuDevicePrimaryCtxSetFlags(CurrentDevice(), flags));
}

CUDART_API cudaGetDeviceFlags(unsigned* flags) {
  if (Driver().status != CUDA_SUCCESS) return Set(Driver().status);
  int active = 0;
  return Set(Driver().cuDevicePrimaryCtxGetState(CurrentDevice(), flags, &active));
}

CUDART_API cudaDriverGetVersion(int* version) {
  if (version == nullptr) return Set(cudaErrorInvalidValue);
  *version = 0;
  if (Driver().cuDriverGetVersion == nullptr) return cudaSuccess;
  return Set(Driver().cuDriverGetVersion(version));
}

CUDART_API cudaRuntimeGetVersion(int* version) {
  if (version == nullptr) return Set(cudaErrorInvalidValue);
  *version = CUDART_VERSION;
  return cudaSuccess;
}

CUDART_API cudaProfilerStart() { return cudaSuccess; }
CUDART_API cudaProfilerStop() { return cudaSuccess; }

extern "C" CUDART_VISIBLE const char* CUDARTAPI cudaGetErrorName(cudaError_t error) {
  switch (error) {
#define SIMGPU_ERROR(code, text) \
  case code:                     \
    return #code;
#include "simgpu/runtime/errors.inc"
#undef SIMGPU_ERROR
    default:
      break;
  }
  return "unrecognized error code";
}

extern "C" CUDART_VISIBLE const char* CUDARTAPI cudaGetErrorString(cudaError_t error) {
  switch (error) {
#define SIMGPU_ERROR(code, text) \
  case code:                     \
    return text;
#include "simgpu/runtime/errors.inc"
#undef SIMGPU_ERROR
    default:
      break;
  }
  return "unrecognized error code";
}

namespace {

cudaError_t EntryPoint(int pt, const char* name, void** function, unsigned version, unsigned long long flags,
                       cudaDriverEntryPointQueryResult* result) {
  if (Driver().status != CUDA_SUCCESS) return Set(Driver().status);
  if ((flags & 3) == 0 && pt != 0) flags |= cudaEnablePerThreadDefaultStream;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  const CUresult found = Driver().cuGetProcAddress(name, function, static_cast<int>(version), flags, &status);
  if (result != nullptr) *result = static_cast<cudaDriverEntryPointQueryResult>(status);
  return found == CUDA_ERROR_NOT_FOUND ? cudaSuccess : Set(found);  // the result contains it
}

}  // namespace

CUDART_BOTH(cudaGetDriverEntryPoint, cudaGetDriverEntryPoint_ptsz,
            (const char* name, void** function, unsigned long long flags, cudaDriverEntryPointQueryResult* result),
            (name, function, flags, result), { return EntryPoint(pt, name, function, CUDART_VERSION, flags, result); })

CUDART_BOTH(cudaGetDriverEntryPointByVersion, cudaGetDriverEntryPointByVersion_ptsz,
            (const char* name, void** function, unsigned version, unsigned long long flags,
             cudaDriverEntryPointQueryResult* result),
            (name, function, version, flags, result),
            { return EntryPoint(pt, name, function, version, flags, result); })
