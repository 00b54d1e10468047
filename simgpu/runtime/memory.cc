// Memory. Reports to the checker every block of device memory that the application gets or gives back.
#include "simgpu/checker.h"
#include "simgpu/runtime/runtime.h"

using namespace simgpu_runtime;

CUDART_API cudaMalloc(void** result, size_t bytes) {
  CUDART_READY();
  if (result == nullptr) return Set(cudaErrorInvalidValue);
  *result = nullptr;
  if (bytes == 0) return cudaSuccess;
  const Telling telling;
  CUdeviceptr address = 0;
  CUresult status = drv.cuMemAlloc(&address, bytes);
  status = telling.Given(status, address, bytes, SIMGPU_NO_STREAM);
  if (status == CUDA_SUCCESS) *result = reinterpret_cast<void*>(address);
  return Set(status);
}

CUDART_API cudaFree(void* pointer) {
  CUDART_READY();
  if (pointer == nullptr) return cudaSuccess;
  const Telling telling;
  const CUdeviceptr address = reinterpret_cast<CUdeviceptr>(pointer);
  telling.Returned(address, SIMGPU_NO_STREAM);
  return Set(telling.Answered(drv.cuMemFree(address), address));
}

CUDART_API cudaMallocPitch(void** result, size_t* pitch, size_t width, size_t height) {
  CUDART_READY();
  if (result == nullptr || pitch == nullptr) return Set(cudaErrorInvalidValue);
  *result = nullptr;
  if (width == 0 || height == 0) {
    *pitch = 0;
    return cudaSuccess;
  }
  const Telling telling;
  CUdeviceptr address = 0;
  CUresult status = drv.cuMemAllocPitch(&address, pitch, width, height, 4);
  status = telling.Given(status, address, *pitch * height, SIMGPU_NO_STREAM);
  if (status == CUDA_SUCCESS) *result = reinterpret_cast<void*>(address);
  return Set(status);
}

CUDART_API cudaMalloc3D(cudaPitchedPtr* result, cudaExtent extent) {
  if (result == nullptr) return Set(cudaErrorInvalidValue);
  *result = {nullptr, 0, extent.width, extent.height};
  return cudaMallocPitch(&result->ptr, &result->pitch, extent.width, extent.height * extent.depth);
}

CUDART_API cudaMallocManaged(void** result, size_t bytes, unsigned flags) {
  CUDART_READY();
  if (result == nullptr) return Set(cudaErrorInvalidValue);
  const Telling telling;
  CUdeviceptr address = 0;
  const CUresult status = drv.cuMemAllocManaged(&address, bytes, flags);
  *result = reinterpret_cast<void*>(address);
  return Set(telling.Given(status, address, bytes, SIMGPU_NO_STREAM));
}

CUDART_BOTH(cudaMallocAsync, cudaMallocAsync_ptsz, (void** result, size_t bytes, cudaStream_t stream),
            (result, bytes, stream), {
              CUDART_READY();
              if (result == nullptr) return Set(cudaErrorInvalidValue);
              *result = nullptr;
              if (bytes == 0) return cudaSuccess;
              const Telling telling;
              CUdeviceptr address = 0;
              CUresult status = drv.cuMemAllocAsync[pt](&address, bytes, stream);
              status = telling.Given(status, address, bytes, stream);
              if (status == CUDA_SUCCESS) *result = reinterpret_cast<void*>(address);
              return Set(status);
            })

CUDART_BOTH(cudaMallocFromPoolAsync, cudaMallocFromPoolAsync_ptsz,
            (void** result, size_t bytes, cudaMemPool_t pool, cudaStream_t stream), (result, bytes, pool, stream), {
              CUDART_READY();
              if (result == nullptr) return Set(cudaErrorInvalidValue);
              *result = nullptr;
              if (bytes == 0) return cudaSuccess;
              const Telling telling;
              CUdeviceptr address = 0;
              CUresult status = drv.cuMemAllocFromPoolAsync[pt](&address, bytes, pool, stream);
              status = telling.Given(status, address, bytes, stream);
              if (status == CUDA_SUCCESS) *result = reinterpret_cast<void*>(address);
              return Set(status);
            })

CUDART_BOTH(cudaFreeAsync, cudaFreeAsync_ptsz, (void* pointer, cudaStream_t stream), (pointer, stream), {
  CUDART_READY();
  if (pointer == nullptr) return cudaSuccess;
  const Telling telling;
  const CUdeviceptr address = reinterpret_cast<CUdeviceptr>(pointer);
  telling.Returned(address, stream);
  return Set(telling.Answered(drv.cuMemFreeAsync[pt](address, stream), address));
})

CUDART_API cudaHostAlloc(void** result, size_t bytes, unsigned flags) {
  CUDART_READY();
  if (result == nullptr) return Set(cudaErrorInvalidValue);
  *result = nullptr;
  if (bytes == 0) return cudaSuccess;
  return Set(drv.cuMemHostAlloc(result, bytes, flags));
}

CUDART_API cudaMallocHost(void** result, size_t bytes) { return cudaHostAlloc(result, bytes, 0); }

CUDART_API cudaFreeHost(void* pointer) {
  CUDART_READY();
  return pointer == nullptr ? cudaSuccess : Set(drv.cuMemFreeHost(pointer));
}

CUDART_API cudaHostRegister(void* pointer, size_t bytes, unsigned flags) {
  CUDART_READY();
  return Set(drv.cuMemHostRegister(pointer, bytes, flags));
}

CUDART_API cudaHostUnregister(void* pointer) {
  CUDART_READY();
  return Set(drv.cuMemHostUnregister(pointer));
}

CUDART_API cudaHostGetDevicePointer(void** result, void* host, unsigned flags) {
  CUDART_READY();
  return Set(drv.cuMemHostGetDevicePointer(reinterpret_cast<CUdeviceptr*>(result), host, flags));
}

CUDART_API cudaHostGetFlags(unsigned* flags, void* host) {
  CUDART_READY();
  return Set(drv.cuMemHostGetFlags(flags, host));
}

CUDART_API cudaMemGetInfo(size_t* free, size_t* total) {
  CUDART_READY();
  return Set(drv.cuMemGetInfo(free, total));
}

CUDART_API cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  CUDART_READY();
  if (attributes == nullptr) return Set(cudaErrorInvalidValue);
  unsigned type = 0, managed = 0;
  int device = -2;
  CUpointer_attribute asked[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                 CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
  void* answers[] = {&type, &managed, &device};
  const CUresult status = drv.cuPointerGetAttributes(3, asked, answers, reinterpret_cast<CUdeviceptr>(pointer));
  if (status != CUDA_SUCCESS) return Set(status);
  *attributes = {};
  attributes->device = device;
  void* const same = const_cast<void*>(pointer);
  if (managed != 0) {
    attributes->type = cudaMemoryTypeManaged;
  } else if (type == CU_MEMORYTYPE_HOST) {
    attributes->type = cudaMemoryTypeHost;
  } else if (type == CU_MEMORYTYPE_DEVICE) {
    attributes->type = cudaMemoryTypeDevice;
  } else {
    attributes->type = cudaMemoryTypeUnregistered;
  }
  if (attributes->type != cudaMemoryTypeUnregistered) attributes->devicePointer = same;
  if (attributes->type != cudaMemoryTypeDevice) attributes->hostPointer = same;
  return cudaSuccess;
}

CUDART_API cudaMemAdvise(const void* pointer, size_t bytes, cudaMemoryAdvise advice, cudaMemLocation location) {
  CUDART_READY();
  CUmemLocation where = {};
  where.type = static_cast<CUmemLocationType>(location.type);
  where.id = location.id;
  return Set(drv.cuMemAdvise(reinterpret_cast<CUdeviceptr>(pointer), bytes, static_cast<CUmem_advise>(advice), where));
}

CUDART_BOTH(cudaMemPrefetchAsync, cudaMemPrefetchAsync_ptsz,
            (const void* pointer, size_t bytes, cudaMemLocation location, unsigned flags, cudaStream_t stream),
            (pointer, bytes, location, flags, stream), {
              CUDART_READY();
              CUmemLocation where = {};
              where.type = static_cast<CUmemLocationType>(location.type);
              where.id = location.id;
              return Set(
                  drv.cuMemPrefetchAsync[pt](reinterpret_cast<CUdeviceptr>(pointer), bytes, where, flags, stream));
            })

CUDART_API cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* pointer) {
  CUDART_READY();
  return Set(drv.cuIpcGetMemHandle(reinterpret_cast<CUipcMemHandle*>(handle), reinterpret_cast<CUdeviceptr>(pointer)));
}
