// The results of queries about memory and pointers. They must be the same under hotpack, except for memory that is
// shared with other processes (docs/hooks.md, Memory for other processes), where they are known to differ.
#include <cuda.h>

#include "tests/gpu/driver.h"
#include "tests/gpu/probe.h"

namespace hotpack::gpu {
namespace {

constexpr size_t kBytes = 3 * kMiB + 100;

void FreeMemory(const Probe& probe) {
  size_t before = 0, during = 0, after = 0, total = 0;
  void* p = nullptr;
  HOTPACK_NEED(cudaMemGetInfo(&before, &total));
  HOTPACK_NEED(cudaMalloc(&p, 64 * kMiB));
  HOTPACK_NEED(cudaMemGetInfo(&during, &total));
  HOTPACK_NEED(cudaFree(p));
  HOTPACK_NEED(cudaMemGetInfo(&after, &total));
  // Other processes of the machine may take or give memory meanwhile, so not to the byte.
  const auto text = [](size_t from, size_t to) {
    return std::to_string((int64_t(from) - int64_t(to)) / int64_t(kMiB)) + " MiB";
  };
  probe.found->Fact(before - during >= 64 * kMiB && before > during, "info.free_memory.allocated",
                    "64 MiB less free after a request of as much", text(before, during) + " less");
  probe.found->Fact(after > during && after - during >= 64 * kMiB, "info.free_memory.freed",
                    "64 MiB more free after its release", text(after, during) + " more");
  probe.found->AddFigure("info.total_memory", "bytes", {double(total)});
}

void Attributes(const Probe& probe, const char* p) {
  cudaPointerAttributes attributes = {};
  HOTPACK_NEED(cudaPointerGetAttributes(&attributes, p + 100));
  probe.Must(attributes.type == cudaMemoryTypeDevice && attributes.device == 0 && attributes.devicePointer == p + 100,
             "info.cudaPointerGetAttributes", "device memory of device 0, the pointer itself",
             "type " + std::to_string(attributes.type) + ", device " + std::to_string(attributes.device) +
                 ", pointer " + (attributes.devicePointer == p + 100 ? "itself" : "another"));
}

void Range(const Probe& probe, const Driver& driver, CUdeviceptr p) {
  CUdeviceptr base = 0;
  size_t size = 0;
  const CUresult result = driver.cuMemGetAddressRange_v2(&base, &size, p + 100);
  probe.Must(result == CUDA_SUCCESS && base == p && size >= kBytes && size < kBytes + 2 * kMiB,
             "info.cuMemGetAddressRange", "the block's start and size",
             ResultText(result) + ", " + std::to_string(int64_t(base) - int64_t(p)) + " from its start, " +
                 std::to_string(size) + " bytes of " + std::to_string(kBytes));
  CUdeviceptr start = 0;
  size = 0;
  const CUresult first = driver.cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, p + 100);
  const CUresult second = driver.cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, p + 100);
  probe.found->Fact(
      first == CUDA_SUCCESS && second == CUDA_SUCCESS && start == p && size >= kBytes && size < kBytes + 2 * kMiB,
      "info.range_attributes", "the block's start and size",
      ResultText(first) + ", " + std::to_string(int64_t(start) - int64_t(p)) + " from its start, " +
          ResultText(second) + ", " + std::to_string(size) + " bytes of " + std::to_string(kBytes));
}

void BufferIds(const Probe& probe, const Driver& driver, CUdeviceptr one, CUdeviceptr other) {
  unsigned long long ids[2] = {};
  const CUresult first = driver.cuPointerGetAttribute(&ids[0], CU_POINTER_ATTRIBUTE_BUFFER_ID, one);
  const CUresult second = driver.cuPointerGetAttribute(&ids[1], CU_POINTER_ATTRIBUTE_BUFFER_ID, other);
  probe.found->Fact(first == CUDA_SUCCESS && second == CUDA_SUCCESS && ids[0] != ids[1], "info.buffer_id",
                    "two blocks have two numbers",
                    ResultText(first) + ", " + ResultText(second) + ", " +
                        (ids[0] == ids[1] ? "the same" : "different") + " numbers");
}

void InterProcess(const Probe& probe, const Driver& driver, CUdeviceptr p) {
  unsigned capable = 0;
  const CUresult asked = driver.cuPointerGetAttribute(&capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, p);
  probe.found->Fact(asked == CUDA_SUCCESS && capable == 1, "info.ipc_capable", "yes",
                    ResultText(asked) + ", " + YesNo(capable != 0));
  cudaIpcMemHandle_t handle;
  const cudaError_t error = cudaIpcGetMemHandle(&handle, reinterpret_cast<void*>(p));
  cudaGetLastError();
  probe.found->Fact(error == cudaSuccess, "info.cudaIpcGetMemHandle", "a handle", ErrorName(error));
  void* another = nullptr;  // hotpack has seen by now what such blocks are for
  HOTPACK_NEED(cudaMalloc(&another, kBytes));
  const cudaError_t second = cudaIpcGetMemHandle(&handle, another);
  cudaGetLastError();
  HOTPACK_NEED(cudaFree(another));
  probe.Must(second == cudaSuccess, "info.cudaIpcGetMemHandle.second_block", "a handle", ErrorName(second));
}

// Memory of cuMemAlloc has no handle of its own.
void RetainHandle(const Probe& probe, const Driver& driver, CUdeviceptr p) {
  CUmemGenericAllocationHandle handle = 0;
  const CUresult result = driver.cuMemRetainAllocationHandle(&handle, reinterpret_cast<void*>(p));
  if (result == CUDA_SUCCESS) driver.cuMemRelease(handle);
  probe.found->Fact(result != CUDA_SUCCESS, "info.cuMemRetainAllocationHandle", "refused for a block of cudaMalloc",
                    ResultText(result));
}

// Memory of cuMemAlloc belongs to its context; memory of a pool to none (Programming Guide, Pointer Attributes).
void ContextOf(const Probe& probe, const Driver& driver, CUdeviceptr p, bool of_pool, const char* name) {
  CUcontext context = nullptr;
  const CUresult result = driver.cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, p);
  probe.found->Fact(result == CUDA_SUCCESS && (context == nullptr) == of_pool, name, of_pool ? "none" : "one",
                    ResultText(result) + ", " + (context == nullptr ? "none" : "one"));
}

// Once released, an address is no pointer any more.
void Released(const Probe& probe, const Driver& driver, CUdeviceptr p) {
  unsigned type = 0;
  const CUresult result = driver.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p);
  probe.found->Fact(result == CUDA_ERROR_INVALID_VALUE, "info.released", "CUDA_ERROR_INVALID_VALUE (1)",
                    ResultText(result));
}

void PoolHandle(const Probe& probe, const Driver& driver) {
  void* block = nullptr;
  CUmemoryPool pool = nullptr;
  cudaMemPool_t own = nullptr;
  HOTPACK_NEED(cudaDeviceGetDefaultMemPool(&own, 0));
  HOTPACK_NEED(cudaMallocAsync(&block, kBytes, nullptr));
  const CUresult result =
      driver.cuPointerGetAttribute(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, reinterpret_cast<CUdeviceptr>(block));
  ContextOf(probe, driver, reinterpret_cast<CUdeviceptr>(block), true, "info.context_of_cudaMallocAsync");
  HOTPACK_NEED(cudaFreeAsync(block, nullptr));
  HOTPACK_NEED(cudaDeviceSynchronize());
  probe.found->Fact(result == CUDA_SUCCESS && pool == own, "info.pool_of_cudaMallocAsync", "the device's default pool",
                    ResultText(result) + ", " +
                        (pool == own       ? "that pool"
                         : pool == nullptr ? "none"
                                           : "another"));
}

}  // namespace

void RunInfo(Probe& probe) {
  FreeMemory(probe);
  const Driver driver;
  if (const std::string missing = driver.Missing(); !missing.empty()) {
    probe.found->Skip("info.driver", "the driver has no " + missing);
    return;
  }
  void* one = nullptr;
  void* other = nullptr;
  HOTPACK_NEED(cudaMalloc(&one, kBytes));
  HOTPACK_NEED(cudaMalloc(&other, kBytes));
  const auto p = reinterpret_cast<CUdeviceptr>(one);
  Attributes(probe, static_cast<const char*>(one));
  Range(probe, driver, p);
  BufferIds(probe, driver, p, reinterpret_cast<CUdeviceptr>(other));
  InterProcess(probe, driver, p);
  RetainHandle(probe, driver, p);
  ContextOf(probe, driver, p, false, "info.context_of_cudaMalloc");
  HOTPACK_NEED(cudaFree(one));
  Released(probe, driver, p);
  HOTPACK_NEED(cudaFree(other));
  PoolHandle(probe, driver);
}

}  // namespace hotpack::gpu
