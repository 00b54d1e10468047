// The driver functions that the allocator calls itself; hooked ones if a preload hooks them.
#pragma once

#include <cuda.h>

namespace hotpack_torch {

struct Driver {
  decltype(&cuCtxGetCurrent) CtxGetCurrent = nullptr;
  decltype(&cuCtxSetCurrent) CtxSetCurrent = nullptr;
  decltype(&cuCtxPushCurrent) CtxPushCurrent = nullptr;
  decltype(&cuCtxPopCurrent) CtxPopCurrent = nullptr;
  decltype(&cuDeviceGet) DeviceGet = nullptr;
  decltype(&cuDeviceTotalMem) DeviceTotalMem = nullptr;
  decltype(&cuDeviceCanAccessPeer) DeviceCanAccessPeer = nullptr;
  decltype(&cuDevicePrimaryCtxRetain) DevicePrimaryCtxRetain = nullptr;
  decltype(&cuMemAlloc) MemAlloc = nullptr;
  decltype(&cuMemFree) MemFree = nullptr;
  decltype(&cuMemGetInfo) MemGetInfo = nullptr;
  decltype(&cuStreamIsCapturing) StreamIsCapturing = nullptr;
  decltype(&cuThreadExchangeStreamCaptureMode) ThreadExchangeStreamCaptureMode = nullptr;
};

// Returns null if there is no driver or if it lacks one of them.
const Driver* GetDriver();

// Makes the device's primary context, which is PyTorch's, current while it lives. One driver call if it is already.
class DeviceScope {
 public:
  explicit DeviceScope(int device);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;
  bool ok() const { return ok_; }

 private:
  bool ok_ = false;
  bool pushed_ = false;
};

// Returns the device's total bytes; 0: unknown.
size_t TotalBytes(int device);

// Returns the device's free bytes; 0: unknown.
size_t FreeBytes(int device);

inline bool IsCapturing(const Driver& driver, void* stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return driver.StreamIsCapturing(static_cast<CUstream>(stream), &status) != CUDA_SUCCESS ||
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}

}  // namespace hotpack_torch
