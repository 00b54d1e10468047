// Primary contexts.
#include <algorithm>

#include "simgpu/driver/api.h"

namespace simgpu {
namespace {

bool Valid(const Driver& d, CUdevice device) { return device >= 0 && device < static_cast<int>(d.devices.size()); }

void Drop(Driver& d, Device* device) {
  if (device->primary == nullptr) return;
  ForgetPrimary(d, device->ordinal);
  DestroyContext(d, device->primary);
  device->primary = nullptr;
  device->primary_retains = 0;
}

CUresult Release(CUdevice number) {
  SIMGPU_ENTER(cuDevicePrimaryCtxRelease);
  if (!Valid(d, number)) return CUDA_ERROR_INVALID_DEVICE;
  Device& device = d.devices[number];
  if (device.primary_retains == 0) return CUDA_ERROR_INVALID_CONTEXT;
  ReleasePrimary(d, number);
  return CUDA_SUCCESS;
}

CUresult Reset(CUdevice number) {
  SIMGPU_ENTER(cuDevicePrimaryCtxReset);
  if (!Valid(d, number)) return CUDA_ERROR_INVALID_DEVICE;
  Drop(d, &d.devices[number]);
  return CUDA_SUCCESS;
}

CUresult SetFlags(CUdevice number, unsigned flags) {
  SIMGPU_ENTER(cuDevicePrimaryCtxSetFlags);
  if (!Valid(d, number)) return CUDA_ERROR_INVALID_DEVICE;
  Device& device = d.devices[number];
  device.primary_flags = flags;
  if (device.primary != nullptr) device.primary->flags = flags;
  return CUDA_SUCCESS;
}

}  // namespace

// Pools belong to the device: if no other context is left, theirs end too.
void ForgetPrimary(Driver& d, int number) {
  if (!Valid(d, number) || d.devices[number].primary == nullptr) return;
  const Context* primary = d.devices[number].primary;
  const bool alone = std::none_of(d.contexts.begin(), d.contexts.end(), [primary](const Context* context) {
    return context != primary && context->device == primary->device;
  });
  if (alone) {
    d.checker.ForgetDevice(number);
  } else {
    d.checker.ForgetContext(primary->id);
  }
}

Context* RetainPrimary(Driver& d, int number) {
  Device& device = d.devices[number];
  if (device.primary == nullptr) {
    device.primary = CreateContext(d, number, device.primary_flags);
    device.primary->primary = true;
  }
  ++device.primary_retains;
  return device.primary;
}

void ReleasePrimary(Driver& d, int number) {
  Device& device = d.devices[number];
  if (device.primary_retains > 0 && --device.primary_retains == 0) Drop(d, &device);
}

SIMGPU_API cuDevicePrimaryCtxRetain(CUcontext* result, CUdevice number) {
  SIMGPU_ENTER(cuDevicePrimaryCtxRetain);
  if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!Valid(d, number)) return CUDA_ERROR_INVALID_DEVICE;
  *result = reinterpret_cast<CUcontext>(RetainPrimary(d, number));
  return CUDA_SUCCESS;
}

SIMGPU_API cuDevicePrimaryCtxRelease(CUdevice number) { return Release(number); }
SIMGPU_API cuDevicePrimaryCtxRelease_v2(CUdevice number) { return Release(number); }
SIMGPU_API cuDevicePrimaryCtxReset(CUdevice number) { return Reset(number); }
SIMGPU_API cuDevicePrimaryCtxReset_v2(CUdevice number) { return Reset(number); }
SIMGPU_API cuDevicePrimaryCtxSetFlags(CUdevice number, unsigned flags) { return SetFlags(number, flags); }
SIMGPU_API cuDevicePrimaryCtxSetFlags_v2(CUdevice number, unsigned flags) { return SetFlags(number, flags); }

SIMGPU_API cuDevicePrimaryCtxGetState(CUdevice number, unsigned* flags, int* active) {
  SIMGPU_ENTER(cuDevicePrimaryCtxGetState);
  if (!Valid(d, number)) return CUDA_ERROR_INVALID_DEVICE;
  const Device& device = d.devices[number];
  if (flags != nullptr) *flags = device.primary_flags;
  if (active != nullptr) *active = device.primary != nullptr;
  return CUDA_SUCCESS;
}

}  // namespace simgpu
