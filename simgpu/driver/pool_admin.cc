// Creation, queries and settings of memory pools.
#include "simgpu/driver/api.h"

namespace simgpu {
namespace {

Pool* From(CUmemoryPool handle) { return reinterpret_cast<Pool*>(handle); }
CUmemoryPool To(Pool* pool) { return reinterpret_cast<CUmemoryPool>(pool); }
bool Valid(const Driver& d, CUdevice device) { return device >= 0 && device < static_cast<int>(d.devices.size()); }

}  // namespace

SIMGPU_API cuMemPoolCreate(CUmemoryPool* result, const CUmemPoolProps* props) {
  SIMGPU_ENTER(cuMemPoolCreate);
  if (result == nullptr || props == nullptr || props->location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  if (!Valid(d, props->location.id)) return CUDA_ERROR_INVALID_DEVICE;
  if (props->handleTypes != CU_MEM_HANDLE_TYPE_NONE) return CUDA_ERROR_NOT_SUPPORTED;
  Pool* pool = new Pool;
  pool->device = props->location.id;
  pool->max_bytes = props->maxSize;
  d.pools.insert(pool);
  *result = To(pool);
  return CUDA_SUCCESS;
}

SIMGPU_API cuMemPoolDestroy(CUmemoryPool handle) {
  SIMGPU_ENTER(cuMemPoolDestroy);
  Pool* pool = From(handle);
  if (!d.pools.contains(pool) || pool->is_default) return CUDA_ERROR_INVALID_VALUE;
  Device& device = d.devices[pool->device];
  if (device.pool == pool) device.pool = &device.default_pool;
  d.pools.erase(pool);
  d.ended_pools.insert(pool);  // ends with its last block, once the host knows that its release is done
  TrimPools(d);
  return CUDA_SUCCESS;
}

SIMGPU_API cuMemPoolTrimTo(CUmemoryPool handle, size_t keep) {
  SIMGPU_ENTER(cuMemPoolTrimTo);
  if (!d.pools.contains(From(handle))) return CUDA_ERROR_INVALID_VALUE;
  TrimPool(d, From(handle), keep);
  return CUDA_SUCCESS;
}

SIMGPU_API cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  SIMGPU_ENTER(cuMemPoolSetAttribute);
  Pool* pool = From(handle);
  if (!d.pools.contains(pool) || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      pool->reuse[attribute] = *static_cast<int*>(value) != 0;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      pool->release_threshold = *static_cast<cuuint64_t*>(value);
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      if (*static_cast<cuuint64_t*>(value) != 0) return CUDA_ERROR_INVALID_VALUE;
      pool->used_high = pool->used;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      if (*static_cast<cuuint64_t*>(value) != 0) return CUDA_ERROR_INVALID_VALUE;
      pool->reserved_high = pool->reserved;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

SIMGPU_API cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  SIMGPU_ENTER(cuMemPoolGetAttribute);
  Pool* pool = From(handle);
  if (!d.pools.contains(pool) || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto* number = static_cast<cuuint64_t*>(value);
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      *static_cast<int*>(value) = static_cast<int>(pool->reuse[attribute]);
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      *number = pool->release_threshold;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
      *number = pool->reserved;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      *number = pool->reserved_high;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
      *number = pool->used;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      *number = pool->used_high;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

SIMGPU_API cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device) {
  SIMGPU_ENTER(cuDeviceGetDefaultMemPool);
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!Valid(d, device)) return CUDA_ERROR_INVALID_DEVICE;
  *pool = To(&d.devices[device].default_pool);
  return CUDA_SUCCESS;
}

SIMGPU_API cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice device) {
  SIMGPU_ENTER(cuDeviceGetMemPool);
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!Valid(d, device)) return CUDA_ERROR_INVALID_DEVICE;
  *pool = To(d.devices[device].pool);
  return CUDA_SUCCESS;
}

SIMGPU_API cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
  SIMGPU_ENTER(cuDeviceSetMemPool);
  if (!Valid(d, device)) return CUDA_ERROR_INVALID_DEVICE;
  if (!d.pools.contains(From(pool)) || From(pool)->device != device) return CUDA_ERROR_INVALID_VALUE;
  d.devices[device].pool = From(pool);
  return CUDA_SUCCESS;
}

SIMGPU_API cuMemGetDefaultMemPool(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType) {
  SIMGPU_ENTER(cuMemGetDefaultMemPool);
  if (pool == nullptr || location == nullptr || location->type != CU_MEM_LOCATION_TYPE_DEVICE) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (!Valid(d, location->id)) return CUDA_ERROR_INVALID_DEVICE;
  *pool = To(&d.devices[location->id].default_pool);
  return CUDA_SUCCESS;
}

}  // namespace simgpu
