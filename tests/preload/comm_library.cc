// A communication library, as far as memory is concerned. It makes the calls of NCCL's peer-to-peer transport without
// cuMem (NCCL's source: src/transport/p2p.cc, p2pCanConnect and ncclP2pAllocateShareableBuffer). It contains its own
// way to the driver, as NCCL contains a static CUDA runtime.
#include "tests/preload/comm_library.h"

#include <cuda.h>
#include <dlfcn.h>

namespace {

constexpr size_t kIpcMin = 2 << 20;  // buffers are multiples of this

struct Driver {
  decltype(&::cuMemAlloc) Alloc;
  decltype(&::cuMemAllocPitch) AllocPitch;
  decltype(&::cuMemFree) Free;
  decltype(&::cuMemsetD8) Set;
  decltype(&::cuIpcGetMemHandle) GetHandle;
  decltype(&::cuMemGetAddressRange) GetRange;
  decltype(&::cuPointerGetAttribute) GetAttribute;
  decltype(&::cuMemRetainAllocationHandle) Retain;
  decltype(&::cuMemRelease) Release;
};

template <typename Function>
bool Find(void* get, const char* name, int version, Function* function) {
  const auto look_up =
      reinterpret_cast<CUresult (*)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*)>(get);
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return look_up(name, reinterpret_cast<void**>(function), version, CU_GET_PROC_ADDRESS_LEGACY_STREAM, &status) ==
         CUDA_SUCCESS;
}

bool Load(Driver* driver) {
  void* library = dlopen("libcuda.so.1", RTLD_LAZY);
  void* get = library != nullptr ? dlsym(library, "cuGetProcAddress_v2") : nullptr;
  return get != nullptr && Find(get, "cuMemAlloc", 3020, &driver->Alloc) &&
         Find(get, "cuMemAllocPitch", 3020, &driver->AllocPitch) && Find(get, "cuMemFree", 3020, &driver->Free) &&
         Find(get, "cuMemsetD8", 3020, &driver->Set) && Find(get, "cuIpcGetMemHandle", 4010, &driver->GetHandle) &&
         Find(get, "cuMemGetAddressRange", 3020, &driver->GetRange) &&
         Find(get, "cuPointerGetAttribute", 4000, &driver->GetAttribute) &&
         Find(get, "cuMemRetainAllocationHandle", 11000, &driver->Retain) &&
         Find(get, "cuMemRelease", 10020, &driver->Release);
}

enum class Legacy { kUnknown, kYes, kNo };
Legacy legacy_ipc = Legacy::kUnknown;  // NCCL asks once a process and keeps the answer

bool CanConnect(const Driver& driver) {
  if (legacy_ipc == Legacy::kUnknown) {
    CUdeviceptr dummy = 0;
    CUipcMemHandle handle;
    if (driver.Alloc(&dummy, kIpcMin) != CUDA_SUCCESS) return false;
    legacy_ipc = driver.GetHandle(&handle, dummy) == CUDA_SUCCESS ? Legacy::kYes : Legacy::kNo;
    driver.Free(dummy);
  }
  return legacy_ipc == Legacy::kYes;
}

}  // namespace

int CommConnect(int channels) {
  Driver driver;
  if (!Load(&driver)) return -1;
  int direct = 0;
  for (int i = 0; i < channels; ++i) {
    CUdeviceptr buffer = 0;
    CUipcMemHandle handle;
    size_t pitch = 0;
    if (!CanConnect(driver)) continue;
    const size_t bytes = (5 + static_cast<size_t>(i)) * kIpcMin;
    const CUresult got = i % 2 == 0 ? driver.Alloc(&buffer, bytes) : driver.AllocPitch(&buffer, &pitch, bytes, 1, 4);
    if (got != CUDA_SUCCESS || driver.Set(buffer, 0, bytes) != CUDA_SUCCESS) return -1;
    if (driver.GetHandle(&handle, buffer) == CUDA_SUCCESS) ++direct;
    if (driver.Free(buffer) != CUDA_SUCCESS) return -1;
  }
  return direct;
}

// As ncclRegister does with cuMem (NCCL 2.30: src/register/register.cc). Memory without legacy handles must be mapped
// memory, and each of its segments has an allocation handle.
int CommRegister(unsigned long long address, unsigned long long bytes) {
  Driver driver;
  if (!Load(&driver)) return -1;
  CUdeviceptr base = 0;
  size_t size = 0;
  CUmemorytype type = CU_MEMORYTYPE_HOST;
  int legacy = 0;
  CUresult result = driver.GetRange(&base, &size, address);
  if (result == CUDA_SUCCESS) result = driver.GetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);
  if (result == CUDA_SUCCESS && type == CU_MEMORYTYPE_DEVICE) {
    result = driver.GetAttribute(&legacy, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, base);
  }
  for (CUdeviceptr at = base; result == CUDA_SUCCESS && legacy == 0 && at < address + bytes; at += size) {
    CUmemGenericAllocationHandle handle = 0;
    result = driver.Retain(&handle, reinterpret_cast<void*>(at));
    if (result == CUDA_SUCCESS) result = driver.Release(handle);
    if (result == CUDA_SUCCESS) result = driver.GetRange(nullptr, &size, at);
  }
  return result;
}
