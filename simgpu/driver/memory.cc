// Device, managed and host memory.
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>

#include "simgpu/checker/virtual_time.h"
#include "simgpu/driver/api.h"

namespace simgpu {
namespace {

constexpr uint64_t kPitch = 512;
constexpr uint64_t kHostPage = 4096;

bool DeviceHas(Driver& d, const Context* context) { return d.contexts.contains(const_cast<Context*>(context)); }

CUresult Allocate(Driver& d, CUdeviceptr* result, uint64_t bytes) {
  SIMGPU_CONTEXT(context);
  if (result == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  SIMGPU_UNSAFE();
  Allocation* allocation = AllocateOnDevice(d, context, bytes);
  if (allocation == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  HostTakesBytes(bytes);
  d.checker.Given(allocation->base, bytes, Teller::kDriver);
  *result = allocation->base;
  return CUDA_SUCCESS;
}

// Host memory that the device can reach, at one address for both.
CUresult AllocateHost(Driver& d, uint64_t* result, uint64_t bytes, AllocationKind kind, unsigned flags) {
  SIMGPU_CONTEXT(context);
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  SIMGPU_UNSAFE();
  const uint64_t mapped = (bytes + kHostPage - 1) / kHostPage * kHostPage;
  void* at = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  Allocation* allocation = d.memory.AddHost(kind, reinterpret_cast<uint64_t>(at), bytes);
  allocation->reserved = mapped;
  allocation->context = OwnerOf(context);
  allocation->device = context->device;
  allocation->flags = flags;
  *result = allocation->base;
  return CUDA_SUCCESS;
}

void FreeHost(Driver& d, Allocation* allocation) {
  const uint64_t base = allocation->base, reserved = allocation->reserved;
  d.memory.Free(allocation, nullptr);
  munmap(reinterpret_cast<void*>(base), reserved);
}

CUresult GetInfo(size_t* free, size_t* total) {
  SIMGPU_ENTER(cuMemGetInfo);
  SIMGPU_CONTEXT(context);
  if (free == nullptr || total == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Physical& physical = d.devices[context->device].physical;
  *free = physical.capacity - physical.used;
  *total = physical.capacity;
  return CUDA_SUCCESS;
}

CUresult AllocPitch(CUdeviceptr* result, size_t* pitch, size_t width, size_t height, unsigned element) {
  SIMGPU_ENTER(cuMemAllocPitch);
  if (pitch == nullptr || width == 0 || height == 0) return CUDA_ERROR_INVALID_VALUE;
  if (element != 4 && element != 8 && element != 16) return CUDA_ERROR_INVALID_VALUE;
  *pitch = (width + kPitch - 1) / kPitch * kPitch;
  return Allocate(d, result, *pitch * height);
}

// cuMemFree waits for the device ("may perform implicit synchronization"), except for memory of a pool: there the
// caller guarantees that nothing uses it (facts of the driver, stream-ordered memory allocator).
CUresult Free(CUdeviceptr address) {
  SIMGPU_ENTER(cuMemFree);
  if (address == 0) return CUDA_SUCCESS;
  SIMGPU_ANY_CONTEXT();
  SIMGPU_UNSAFE();
  Allocation* allocation = d.memory.FindAllocationStart(address);
  const bool ours = allocation != nullptr &&
                    (allocation->kind == AllocationKind::kDevice || allocation->kind == AllocationKind::kManaged);
  if (!ours) {
    d.checker.UnknownFree(address);
    return CUDA_ERROR_INVALID_VALUE;
  }
  HostTakesBytes(allocation->bytes);
  if (allocation->pool != nullptr) return FreeToPool(d, allocation, nullptr);
  if (DeviceHas(d, allocation->context)) HostSawFamily(d, allocation->context);
  d.checker.Returned(address, Teller::kDriver);
  if (allocation->kind == AllocationKind::kManaged) {
    FreeHost(d, allocation);
  } else {
    d.checker.TakenAway(address, address + allocation->bytes, "cuMemFree");
    d.memory.Free(allocation, &d.devices[allocation->device].physical);
  }
  TrimPools(d);
  return CUDA_SUCCESS;
}

CUresult GetAddressRange(CUdeviceptr* base, size_t* bytes, CUdeviceptr address) {
  SIMGPU_ENTER(cuMemGetAddressRange);
  uint64_t start = 0;
  if (const Allocation* allocation = d.memory.FindAllocation(address); allocation != nullptr) {
    if (base != nullptr) *base = allocation->base;
    if (bytes != nullptr) *bytes = allocation->bytes;
    return CUDA_SUCCESS;
  }
  if (const Mapping* mapping = d.memory.FindMapping(address, &start); mapping != nullptr) {
    if (base != nullptr) *base = start;
    if (bytes != nullptr) *bytes = mapping->bytes;
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_NOT_FOUND;
}

CUresult HostAlloc(void** result, size_t bytes, unsigned flags) {
  if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
  HostTakesBytes(bytes);
  uint64_t base = 0;
  const CUresult status = AllocateHost(TheDriver(), &base, bytes, AllocationKind::kHost, flags);
  *result = reinterpret_cast<void*>(base);
  return status;
}

CUresult AllocHost(void** result, size_t bytes) {
  SIMGPU_ENTER(cuMemAllocHost);
  return HostAlloc(result, bytes, 0);
}

CUresult HostRegister(void* pointer, size_t bytes, unsigned flags) {
  SIMGPU_ENTER(cuMemHostRegister);
  SIMGPU_CONTEXT(context);
  SIMGPU_STRICTLY_UNSAFE();
  const uint64_t base = reinterpret_cast<uint64_t>(pointer);
  if (base == 0 || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  auto& all = d.memory.allocations();
  auto next = all.lower_bound(base);
  if (d.memory.FindAllocation(base) != nullptr || (next != all.end() && next->first < base + bytes)) {
    return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  }
  Allocation* allocation = d.memory.AddHost(AllocationKind::kRegistered, base, bytes);
  allocation->context = OwnerOf(context);
  allocation->device = context->device;
  allocation->flags = flags;
  return CUDA_SUCCESS;
}

CUresult HostGetDevicePointer(CUdeviceptr* result, void* pointer) {
  SIMGPU_ENTER(cuMemHostGetDevicePointer);
  const Allocation* allocation = d.memory.FindAllocation(reinterpret_cast<uint64_t>(pointer));
  if (result == nullptr || allocation == nullptr || allocation->kind == AllocationKind::kDevice) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *result = reinterpret_cast<uint64_t>(pointer);
  return CUDA_SUCCESS;
}

}  // namespace

Allocation* AllocateOnDevice(Driver& d, Context* context, uint64_t bytes) {
  return AllocateIn(d, context->device, context, bytes);
}

Allocation* AllocateIn(Driver& d, int ordinal, Context* context, uint64_t bytes) {
  Device& device = d.devices[ordinal];
  Allocation* allocation = d.memory.AllocateDevice(&device.physical, device.ordinal, bytes);
  if (allocation == nullptr) {
    EmptyPools(d, device.ordinal);
    allocation = d.memory.AllocateDevice(&device.physical, device.ordinal, bytes);
  }
  if (allocation != nullptr) allocation->context = context != nullptr ? OwnerOf(context) : nullptr;
  return allocation;
}

SIMGPU_API cuMemGetInfo_v2(size_t* free, size_t* total) { return GetInfo(free, total); }

SIMGPU_API cuMemAlloc_v2(CUdeviceptr* result, size_t bytes) {
  SIMGPU_ENTER(cuMemAlloc);
  return Allocate(d, result, bytes);
}

SIMGPU_API cuMemAllocPitch_v2(CUdeviceptr* result, size_t* pitch, size_t width, size_t height, unsigned element) {
  return AllocPitch(result, pitch, width, height, element);
}

SIMGPU_API cuMemFree_v2(CUdeviceptr address) { return Free(address); }

SIMGPU_API cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* bytes, CUdeviceptr address) {
  return GetAddressRange(base, bytes, address);
}

SIMGPU_API cuMemAllocManaged(CUdeviceptr* result, size_t bytes, unsigned flags) {
  SIMGPU_ENTER(cuMemAllocManaged);
  if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
  uint64_t base = 0;
  const CUresult status = AllocateHost(d, &base, bytes, AllocationKind::kManaged, flags);
  if (status == CUDA_SUCCESS) d.checker.Given(base, bytes, Teller::kDriver);
  *result = base;
  return status;
}

SIMGPU_API cuMemAllocHost_v2(void** result, size_t bytes) { return AllocHost(result, bytes); }

SIMGPU_API cuMemHostAlloc(void** result, size_t bytes, unsigned flags) {
  SIMGPU_ENTER(cuMemHostAlloc);
  return HostAlloc(result, bytes, flags);
}

SIMGPU_API cuMemFreeHost(void* pointer) {
  SIMGPU_ENTER(cuMemFreeHost);
  if (pointer == nullptr) return CUDA_SUCCESS;
  SIMGPU_ANY_CONTEXT();
  SIMGPU_STRICTLY_UNSAFE();
  Allocation* allocation = d.memory.FindAllocationStart(reinterpret_cast<uint64_t>(pointer));
  if (allocation == nullptr || allocation->kind != AllocationKind::kHost) return CUDA_ERROR_INVALID_VALUE;
  if (DeviceHas(d, allocation->context)) HostSawFamily(d, allocation->context);
  FreeHost(d, allocation);
  return CUDA_SUCCESS;
}

SIMGPU_API cuMemHostRegister(void* pointer, size_t bytes, unsigned flags) {
  return HostRegister(pointer, bytes, flags);
}
SIMGPU_API cuMemHostRegister_v2(void* pointer, size_t bytes, unsigned flags) {
  return HostRegister(pointer, bytes, flags);
}

SIMGPU_API cuMemHostUnregister(void* pointer) {
  SIMGPU_ENTER(cuMemHostUnregister);
  SIMGPU_STRICTLY_UNSAFE();
  Allocation* allocation = d.memory.FindAllocationStart(reinterpret_cast<uint64_t>(pointer));
  if (allocation == nullptr || allocation->kind != AllocationKind::kRegistered) {
    return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  }
  d.memory.Free(allocation, nullptr);
  return CUDA_SUCCESS;
}

SIMGPU_API cuMemHostGetDevicePointer_v2(CUdeviceptr* result, void* pointer, unsigned) {
  return HostGetDevicePointer(result, pointer);
}

SIMGPU_API cuMemHostGetFlags(unsigned* flags, void* pointer) {
  SIMGPU_ENTER(cuMemHostGetFlags);
  const Allocation* allocation = d.memory.FindAllocation(reinterpret_cast<uint64_t>(pointer));
  if (flags == nullptr || allocation == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = allocation->flags;
  return CUDA_SUCCESS;
}

}  // namespace simgpu
