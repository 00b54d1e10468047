// Handles of memory for other processes. Creating them works as with the driver. Opening one in another process is not
// simulated, because the simulated devices of two processes share no memory.
#include <unistd.h>

#include <cstring>

#include "simgpu/driver/api.h"

namespace simgpu {
namespace {

constexpr char kMagic[8] = {'s', 'i', 'm', 'g', 'p', 'u', '-', '1'};

struct Contents {
  char magic[8];
  uint64_t process;
  uint64_t base;
  uint64_t id;  // of the allocation: a reused address has another handle
};
static_assert(sizeof(Contents) <= sizeof(CUipcMemHandle));

CUresult Open(CUdeviceptr* address, const CUipcMemHandle& handle, unsigned flags) {
  SIMGPU_ENTER(cuIpcOpenMemHandle);
  SIMGPU_CONTEXT(context);
  (void)context;
  Contents contents;
  memcpy(&contents, &handle, sizeof(contents));
  if (address == nullptr || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) return CUDA_ERROR_INVALID_VALUE;
  if (memcmp(contents.magic, kMagic, sizeof(kMagic)) != 0) return CUDA_ERROR_INVALID_HANDLE;
  // The exporting process has the memory already; its context may not open it.
  return contents.process == static_cast<uint64_t>(getpid()) ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace

// cuda.h: "a pointer to the base of an existing device memory allocation created with cuMemAlloc". Virtual memory and
// memory of pools have other ways.
SIMGPU_API cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr address) {
  SIMGPU_ENTER(cuIpcGetMemHandle);
  SIMGPU_CONTEXT(context);
  (void)context;
  const Allocation* allocation = d.memory.FindAllocationStart(address);
  const bool capable = allocation != nullptr && allocation->kind == AllocationKind::kDevice && !allocation->cached &&
                       allocation->pool == nullptr && !allocation->graph;
  if (handle == nullptr || !capable) return CUDA_ERROR_INVALID_VALUE;
  Contents contents = {{}, static_cast<uint64_t>(getpid()), allocation->base, allocation->id};
  memcpy(contents.magic, kMagic, sizeof(kMagic));
  *handle = {};
  memcpy(handle, &contents, sizeof(contents));
  return CUDA_SUCCESS;
}

SIMGPU_API cuIpcOpenMemHandle(CUdeviceptr* address, CUipcMemHandle handle, unsigned flags) {
  return Open(address, handle, flags);
}
SIMGPU_API cuIpcOpenMemHandle_v2(CUdeviceptr* address, CUipcMemHandle handle, unsigned flags) {
  return Open(address, handle, flags);
}

SIMGPU_API cuIpcCloseMemHandle(CUdeviceptr) {  // none was ever opened
  SIMGPU_ENTER(cuIpcCloseMemHandle);
  return CUDA_ERROR_INVALID_VALUE;
}

}  // namespace simgpu
