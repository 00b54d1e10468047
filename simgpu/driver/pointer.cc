// The driver's facts about a pointer.
#include "simgpu/driver/api.h"
#include "simgpu/driver/work.h"

namespace simgpu {
namespace {

// The memory at an address.
struct Place {
  bool known = false;
  bool host = false, managed = false, mapped = false, pool = false;
  uint64_t begin = 0, bytes = 0, id = 0;
  int device = 0;
  Context* context = nullptr;
  Pool* from = nullptr;
  uint64_t devices = ~uint64_t{0};  // those with access
};

Place Look(Driver& d, uint64_t address) {
  Place p;
  uint64_t base = 0;
  if (const Allocation* a = d.memory.FindAllocation(address); a != nullptr && !a->cached) {
    p = {true,
         a->kind == AllocationKind::kHost || a->kind == AllocationKind::kRegistered,
         a->kind == AllocationKind::kManaged,
         false,
         a->pool != nullptr,
         a->base,
         a->bytes,
         a->id,
         a->device,
         a->pool == nullptr ? a->context : nullptr,  // memory of a pool belongs to no context (Programming Guide)
         a->pool,
         ~uint64_t{0}};
  } else if (const Mapping* m = d.memory.FindMapping(address, &base); m != nullptr) {
    p = {true, false, false, true, false, base, m->bytes, base, m->handle->device, nullptr, nullptr, m->devices};
  }
  return p;
}

template <typename T>
CUresult Put(void* data, T value) {
  *static_cast<T*>(data) = value;
  return CUDA_SUCCESS;
}

CUresult Answer(Driver& d, void* data, CUpointer_attribute attribute, uint64_t address) {
  const Place p = Look(d, address);
  if (attribute == CU_POINTER_ATTRIBUTE_MAPPED) return Put<int>(data, p.known);
  if (!p.known) return CUDA_ERROR_INVALID_VALUE;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      return Put(data, reinterpret_cast<CUcontext>(p.context));
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return Put<unsigned>(data, p.host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return Put<CUdeviceptr>(data, address);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (!p.host && !p.managed) return CUDA_ERROR_INVALID_VALUE;
      return Put(data, reinterpret_cast<void*>(address));
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      return Put<unsigned>(data, 0);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
      return Put<unsigned long long>(data, p.id);
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
      return Put<unsigned>(data, 0);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return Put<unsigned>(data, p.managed);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return Put<int>(data, p.device);
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      return Put<unsigned>(data, !p.host && !p.managed && !p.mapped && !p.pool);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return Put<CUdeviceptr>(data, p.begin);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return Put<size_t>(data, p.bytes);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      return Put<unsigned long long>(data, 0);
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
      return Put<unsigned>(data, 0);
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS: {  // of the current context's device
      const Context* context = CurrentContext();
      const bool access = (p.devices >> (context != nullptr ? context->device : p.device) & 1) != 0;
      return Put<unsigned>(data,
                           access ? CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE : CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE);
    }
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      return Put(data, reinterpret_cast<CUmemoryPool>(p.from));
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
      return Put<CUdeviceptr>(data, p.begin);
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
      return Put<size_t>(data, p.bytes);
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

}  // namespace

SIMGPU_API cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr address) {
  SIMGPU_ENTER(cuPointerGetAttribute);
  if (data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Answer(d, data, attribute, address);
}

// Unlike cuPointerGetAttribute, succeeds for unknown pointers: the answers are then zero.
SIMGPU_API cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** data, CUdeviceptr address) {
  SIMGPU_ENTER(cuPointerGetAttributes);
  if (attributes == nullptr || data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < count; ++i) {
    if (Answer(d, data[i], attributes[i], address) == CUDA_SUCCESS) continue;
    switch (attributes[i]) {
      case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *static_cast<int*>(data[i]) = -2;
        break;
      case CU_POINTER_ATTRIBUTE_CONTEXT:
      case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
      case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
      case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
        *static_cast<uint64_t*>(data[i]) = 0;
        break;
      case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
      case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
        *static_cast<unsigned*>(data[i]) = 0;
        break;
      default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
  }
  return CUDA_SUCCESS;
}

SIMGPU_API cuPointerSetAttribute(const void* value, CUpointer_attribute attribute, CUdeviceptr address) {
  SIMGPU_ENTER(cuPointerSetAttribute);
  if (value == nullptr || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || !Look(d, address).known) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

// Managed memory is the host's here: advice and prefetches have no effect.
static CUresult Advise() {
  SIMGPU_ENTER(cuMemAdvise);
  return CUDA_SUCCESS;
}
SIMGPU_API cuMemAdvise(CUdeviceptr, size_t, CUmem_advise, CUdevice) { return Advise(); }
SIMGPU_API cuMemAdvise_v2(CUdeviceptr, size_t, CUmem_advise, CUmemLocation) { return Advise(); }

static CUresult Prefetch(CUdeviceptr address, size_t bytes, CUstream handle, DefaultStream variant) {
  SIMGPU_ENTER(cuMemPrefetchAsync);
  SIMGPU_WORK_STREAM(stream, handle, variant);
  return Submit(d, stream, CU_GRAPH_NODE_TYPE_EMPTY, [=](Driver& driver, Epoch op, uint64_t) {
    driver.checker.Use(op, address, bytes, "a prefetch");
    return CUDA_SUCCESS;
  });
}
SIMGPU_API cuMemPrefetchAsync(CUdeviceptr address, size_t bytes, CUdevice, CUstream stream) {
  return Prefetch(address, bytes, stream, DefaultStream::kLegacy);
}
SIMGPU_API cuMemPrefetchAsync_ptsz(CUdeviceptr address, size_t bytes, CUdevice, CUstream stream) {
  return Prefetch(address, bytes, stream, DefaultStream::kPerThread);
}
SIMGPU_API cuMemPrefetchAsync_v2(CUdeviceptr address, size_t bytes, CUmemLocation, unsigned, CUstream stream) {
  return Prefetch(address, bytes, stream, DefaultStream::kLegacy);
}
SIMGPU_API cuMemPrefetchAsync_v2_ptsz(CUdeviceptr address, size_t bytes, CUmemLocation, unsigned, CUstream stream) {
  return Prefetch(address, bytes, stream, DefaultStream::kPerThread);
}

}  // namespace simgpu
