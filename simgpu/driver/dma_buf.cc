// Descriptors of device memory for other devices (RDMA). Nothing can import them here: they are empty files.
#include <sys/mman.h>

#include "simgpu/driver/api.h"

namespace simgpu {
namespace {

constexpr uint64_t kHostPage = 4096;

// Whether an allocation, as far as its host pages go, or mappings of one device have the whole range.
bool Backed(Driver& d, uint64_t address, uint64_t bytes) {
  for (uint64_t at : {address, address + kHostPage - 1}) {  // a block may begin within the first page
    const Allocation* allocation = d.memory.FindAllocation(at);
    if (allocation == nullptr || allocation->kind != AllocationKind::kDevice) continue;
    return address + bytes <= (allocation->base + allocation->bytes + kHostPage - 1) / kHostPage * kHostPage;
  }
  int device = -1;
  for (uint64_t at = address; at < address + bytes;) {
    uint64_t start = 0;
    const Mapping* mapping = d.memory.FindMapping(at, &start);
    if (mapping == nullptr || (device >= 0 && mapping->handle->device != device)) return false;
    device = mapping->handle->device;
    at = start + mapping->bytes;
  }
  return true;
}

}  // namespace

// cuda.h: memory of cuMemAlloc, or reserved and fully mapped memory of one device; both ends at host pages.
SIMGPU_API cuMemGetHandleForAddressRange(void* handle, CUdeviceptr address, size_t bytes, CUmemRangeHandleType type,
                                         unsigned long long flags) {
  SIMGPU_ENTER(cuMemGetHandleForAddressRange);
  if (handle == nullptr || bytes == 0 || type != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD) return CUDA_ERROR_INVALID_VALUE;
  if (flags != 0) return CUDA_ERROR_NOT_SUPPORTED;  // a mapping by the PCIe bus
  if (address % kHostPage != 0 || bytes % kHostPage != 0 || !Backed(d, address, bytes)) return CUDA_ERROR_INVALID_VALUE;
  const int descriptor = memfd_create("simgpu-dma-buf", MFD_CLOEXEC);
  if (descriptor < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  *static_cast<int*>(handle) = descriptor;
  return CUDA_SUCCESS;
}

}  // namespace simgpu
