#include "preload/torch/driver.h"

#include <dlfcn.h>

#include <atomic>

#include "preload/torch/figures.h"

namespace hotpack_torch {
namespace {

template <typename Function>
bool Find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

const Driver* Load() {
  static Driver driver;
  void* library = dlopen("libcuda.so.1", RTLD_LAZY);
  if (library == nullptr) return nullptr;
  const bool found =
      Find(library, "cuCtxGetCurrent", &driver.CtxGetCurrent) &&
      Find(library, "cuCtxSetCurrent", &driver.CtxSetCurrent) &&
      Find(library, "cuCtxPushCurrent_v2", &driver.CtxPushCurrent) &&
      Find(library, "cuCtxPopCurrent_v2", &driver.CtxPopCurrent) && Find(library, "cuDeviceGet", &driver.DeviceGet) &&
      Find(library, "cuDeviceTotalMem_v2", &driver.DeviceTotalMem) &&
      Find(library, "cuDeviceCanAccessPeer", &driver.DeviceCanAccessPeer) &&
      Find(library, "cuDevicePrimaryCtxRetain", &driver.DevicePrimaryCtxRetain) &&
      Find(library, "cuMemAlloc_v2", &driver.MemAlloc) && Find(library, "cuMemFree_v2", &driver.MemFree) &&
      Find(library, "cuMemGetInfo_v2", &driver.MemGetInfo) &&
      Find(library, "cuStreamIsCapturing", &driver.StreamIsCapturing) &&
      Find(library, "cuThreadExchangeStreamCaptureMode", &driver.ThreadExchangeStreamCaptureMode);
  return found ? &driver : nullptr;
}

// Retained and never released: PyTorch also keeps its primary contexts to the end of the process.
CUcontext PrimaryContext(const Driver& driver, int device) {
  static std::atomic<CUcontext> contexts[kDevices];
  if (device < 0 || device >= kDevices) return nullptr;
  if (CUcontext known = contexts[device].load(std::memory_order_acquire)) return known;
  CUdevice handle = 0;
  CUcontext context = nullptr;
  if (driver.DeviceGet(&handle, device) != CUDA_SUCCESS) return nullptr;
  if (driver.DevicePrimaryCtxRetain(&context, handle) != CUDA_SUCCESS) return nullptr;
  contexts[device].store(context, std::memory_order_release);
  return context;
}

}  // namespace

const Driver* GetDriver() {
  static const Driver* const driver = Load();
  return driver;
}

DeviceScope::DeviceScope(int device) {
  const Driver* driver = GetDriver();
  CUcontext current = nullptr;
  if (driver == nullptr || driver->CtxGetCurrent(&current) != CUDA_SUCCESS) return;
  const CUcontext wanted = PrimaryContext(*driver, device);
  if (wanted == nullptr) return;
  ok_ = true;
  if (current == wanted) return;
  if (current == nullptr) {  // as the runtime does at a thread's first call
    ok_ = driver->CtxSetCurrent(wanted) == CUDA_SUCCESS;
  } else {
    ok_ = pushed_ = driver->CtxPushCurrent(wanted) == CUDA_SUCCESS;
  }
}

DeviceScope::~DeviceScope() {
  CUcontext popped = nullptr;
  if (pushed_) GetDriver()->CtxPopCurrent(&popped);
}

size_t TotalBytes(int device) {
  const Driver* driver = GetDriver();
  CUdevice handle = 0;
  size_t total = 0;
  if (driver == nullptr || driver->DeviceGet(&handle, device) != CUDA_SUCCESS) return 0;
  return driver->DeviceTotalMem(&total, handle) == CUDA_SUCCESS ? total : 0;
}

size_t FreeBytes(int device) {
  const DeviceScope scope(device);  // the driver's answer is for the current device
  size_t free = 0, total = 0;
  return scope.ok() && GetDriver()->MemGetInfo(&free, &total) == CUDA_SUCCESS ? free : 0;
}

}  // namespace hotpack_torch
