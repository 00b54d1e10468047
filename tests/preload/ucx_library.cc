// UCX, as far as memory is concerned. It makes the driver calls of UCX in their order. UCX's source, read for that
// only: src/uct/cuda/cuda_copy/cuda_copy_md.c (registrations), cuda_ipc/cuda_ipc_md.c (exports),
// src/ucm/cuda/cudamem.c (hooks). It is linked with the driver, as UCX is.
#include "tests/preload/ucx_library.h"

#include <cuda.h>
#include <unistd.h>

namespace {

constexpr unsigned long long kHostPage = 4096;

// Nonzero: ends the calling function with it.
#define STEP(call)                                                       \
  do {                                                                   \
    if (const CUresult step = (call); step != CUDA_SUCCESS) return step; \
  } while (false)

// Mapped memory has a handle. Other memory is asked about by its attributes.
int Detect(CUdeviceptr address, UctRegistration* result, CUcontext* context) {
  CUmemGenericAllocationHandle handle = 0;
  result->retain = cuMemRetainAllocationHandle(&handle, reinterpret_cast<void*>(address));
  if (result->retain == CUDA_SUCCESS) {
    CUmemAllocationProp properties = {};
    const CUresult known = cuMemGetAllocationPropertiesFromHandle(&properties, handle);
    STEP(cuMemRelease(handle));
    result->device = properties.location.id;
    result->memory_type = CU_MEMORYTYPE_DEVICE;
    return known;
  }
  CUpointer_attribute names[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                 CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_CONTEXT};
  void* values[] = {&result->memory_type, &result->managed, &result->device, context};
  return cuPointerGetAttributes(4, names, values, address);
}

// In the block's context: copies there wait for themselves, as RDMA needs it, and the whole allocation is registered.
int FindRange(CUdeviceptr address, CUcontext context, UctRegistration* result) {
  CUcontext popped = nullptr;
  CUdeviceptr base = 0;
  size_t bytes = 0, total = 0;
  char name[64];
  if (context == nullptr) STEP(cuDevicePrimaryCtxRetain(&context, result->device));
  STEP(cuCtxPushCurrent(context));
  unsigned flags = 0;
  CUresult status = cuCtxGetFlags(&flags);
  if (status == CUDA_SUCCESS) status = cuCtxSetFlags(flags | CU_CTX_SYNC_MEMOPS);
  if (status == CUDA_SUCCESS) status = cuMemGetAddressRange(&base, &bytes, address);
  if (status == CUDA_SUCCESS) status = cuDeviceTotalMem(&total, result->device);
  if (status == CUDA_SUCCESS) status = cuDeviceGetName(name, sizeof name, result->device);
  STEP(cuCtxPopCurrent(&popped));
  result->base = base;
  result->bytes = bytes;
  return status;
}

int DmaBuf(unsigned long long base, unsigned long long bytes) {
  decltype(&::cuMemGetHandleForAddressRange) get = nullptr;
  CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  STEP(cuGetProcAddress("cuMemGetHandleForAddressRange", reinterpret_cast<void**>(&get), 12000,
                        CU_GET_PROC_ADDRESS_DEFAULT, &found));
  if (found != CU_GET_PROC_ADDRESS_SUCCESS) return CUDA_ERROR_NOT_FOUND;
  const unsigned long long begin = base / kHostPage * kHostPage;
  const unsigned long long end = (base + bytes + kHostPage - 1) / kHostPage * kHostPage;
  int file = -1;
  STEP(get(&file, begin, end - begin, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
  close(file);
  return CUDA_SUCCESS;
}

}  // namespace

int UctRegister(unsigned long long address, unsigned long long, UctRegistration* result) {
  CUcontext context = nullptr;
  *result = {};
  if (const int status = Detect(address, result, &context); status != 0) return status;
  if (result->memory_type != CU_MEMORYTYPE_DEVICE || result->managed != 0) return 0;
  if (const int status = FindRange(address, context, result); status != 0) return status;
  result->dma_buf = DmaBuf(result->base, result->bytes);
  CUpointer_attribute names[] = {CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE,
                                 CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES};
  void* values[] = {&result->legacy_ipc, &result->handle_types};
  return cuPointerGetAttributes(2, names, values, result->base);
}

int UctExport(unsigned long long address, UctKey* key) {
  CUdeviceptr base = 0;
  size_t bytes = 0;
  *key = {};
  STEP(cuMemGetAddressRange(&base, &bytes, address));
  key->base = base;
  key->bytes = bytes;
  STEP(cuPointerGetAttribute(&key->buffer, CU_POINTER_ATTRIBUTE_BUFFER_ID, address));
  unsigned legacy = 0;
  unsigned long long types = 0;
  CUmemoryPool pool = nullptr;
  CUpointer_attribute names[] = {CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE,
                                 CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE};
  void* values[] = {&legacy, &types, &pool};
  STEP(cuPointerGetAttributes(3, names, values, address));
  if (legacy != 0) {
    CUipcMemHandle handle;
    STEP(cuIpcGetMemHandle(&handle, address));
    key->way = UctWay::kLegacy;
    return CUDA_SUCCESS;
  }
  if ((types & CU_MEM_HANDLE_TYPE_FABRIC) == 0) return CUDA_SUCCESS;
  CUmemGenericAllocationHandle handle = 0;
  CUmemFabricHandle exported;
  if (cuMemRetainAllocationHandle(&handle, reinterpret_cast<void*>(address)) == CUDA_SUCCESS) {
    const CUresult status = cuMemExportToShareableHandle(&exported, handle, CU_MEM_HANDLE_TYPE_FABRIC, 0);
    STEP(cuMemRelease(handle));
    if (status == CUDA_SUCCESS) key->way = UctWay::kFabric;
    return CUDA_SUCCESS;
  }
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUmemPoolPtrExportData pointer;
  if (cuMemPoolExportToShareableHandle(&exported, pool, CU_MEM_HANDLE_TYPE_FABRIC, 0) != CUDA_SUCCESS) return 0;
  STEP(cuMemPoolExportPointer(&pointer, base));
  key->way = UctWay::kPool;
  return CUDA_SUCCESS;
}

int UctStage(unsigned long long bytes, UctKey* key) {
  CUdeviceptr buffer = 0;
  STEP(cuMemAlloc(&buffer, bytes));
  const int status = UctExport(buffer, key);
  STEP(cuMemFree(buffer));
  return status;
}

int UctSignal(void* handle, unsigned long long address) {
  const auto stream = static_cast<CUstream>(handle);
  STEP(cuStreamWriteValue32(stream, address, 7, CU_STREAM_WRITE_VALUE_DEFAULT));
  STEP(cuStreamWaitValue32(stream, address, 7, CU_STREAM_WAIT_VALUE_EQ));
  CUstreamBatchMemOpParams ops[2] = {};
  ops[0].operation = ops[0].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
  ops[0].writeValue.address = address + 8;
  ops[0].writeValue.value64 = 0x100000002;
  ops[1].operation = ops[1].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_64;
  ops[1].waitValue.address = address + 8;
  ops[1].waitValue.value64 = 0x100000002;
  return cuStreamBatchMemOp(stream, 2, ops, 0);
}

int UcmAllocate(unsigned long long* address, unsigned long long bytes) { return cuMemAlloc(address, bytes); }

int UcmFree(unsigned long long address, unsigned long long* base, unsigned long long* bytes) {
  size_t size = 0;
  STEP(cuMemGetAddressRange(base, &size, address));
  *bytes = size;
  return cuMemFree(address);
}
