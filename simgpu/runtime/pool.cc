// Memory pools.
#include "simgpu/runtime/runtime.h"

using namespace simgpu_runtime;

CUDART_API cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  CUDART_READY();
  return Set(drv.cuDeviceGetDefaultMemPool(pool, device));
}

CUDART_API cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
  CUDART_READY();
  return Set(drv.cuDeviceGetMemPool(pool, device));
}

CUDART_API cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
  CUDART_READY();
  return Set(drv.cuDeviceSetMemPool(device, pool));
}

CUDART_API cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* props) {
  CUDART_READY();
  if (props == nullptr) return Set(cudaErrorInvalidValue);
  CUmemPoolProps p = {};
  p.allocType = static_cast<CUmemAllocationType>(props->allocType);
  p.handleTypes = static_cast<CUmemAllocationHandleType>(props->handleTypes);
  p.location.type = static_cast<CUmemLocationType>(props->location.type);
  p.location.id = props->location.id;
  p.maxSize = props->maxSize;
  return Set(drv.cuMemPoolCreate(pool, &p));
}

CUDART_API cudaMemPoolDestroy(cudaMemPool_t pool) {
  CUDART_READY();
  return Set(drv.cuMemPoolDestroy(pool));
}

CUDART_API cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep) {
  CUDART_READY();
  return Set(drv.cuMemPoolTrimTo(pool, keep));
}

CUDART_API cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  CUDART_READY();
  return Set(drv.cuMemPoolSetAttribute(pool, static_cast<CUmemPool_attribute>(attribute), value));
}

CUDART_API cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  CUDART_READY();
  return Set(drv.cuMemPoolGetAttribute(pool, static_cast<CUmemPool_attribute>(attribute), value));
}

CUDART_API cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc* desc, size_t count) {
  CUDART_READY();
  return Set(drv.cuMemPoolSetAccess(pool, reinterpret_cast<const CUmemAccessDesc*>(desc), count));
}

CUDART_API cudaMemPoolGetAccess(cudaMemAccessFlags* flags, cudaMemPool_t pool, cudaMemLocation* location) {
  CUDART_READY();
  return Set(drv.cuMemPoolGetAccess(reinterpret_cast<CUmemAccess_flags*>(flags), pool,
                                    reinterpret_cast<CUmemLocation*>(location)));
}

CUDART_API cudaMemGetDefaultMemPool(cudaMemPool_t* pool, cudaMemLocation* location, cudaMemAllocationType type) {
  CUDART_READY();
  if (location == nullptr) return Set(cudaErrorInvalidValue);
  CUmemLocation where = {};
  where.type = static_cast<CUmemLocationType>(location->type);
  where.id = location->id;
  return Set(drv.cuMemGetDefaultMemPool(pool, &where, static_cast<CUmemAllocationType>(type)));
}
