// The hooks that follow contexts. An arena belongs to a context, but its memory (cuMemCreate) does not go with it
// (cuda.h, cuCtxDestroy), so it is given back when the context ends.
#include <atomic>

#include "preload/allocate.h"
#include "preload/driver_access.h"
#include "preload/hook_scope.h"
#include "preload/hook_table.h"

using hotpack::HookScope;

namespace {

constexpr int kDevices = 64;
constinit std::atomic<CUcontext> primary_contexts[kDevices] = {};

void Note(const HookScope& scope, CUresult result, const CUcontext* context) noexcept try {
  if (scope.Active() && result == CUDA_SUCCESS && context != nullptr && *context != nullptr) {
    hotpack::Order().NoteContext(*context);
  }
} catch (...) {
}

void Retire(const HookScope& scope, CUcontext context, bool alive) noexcept try {
  if (scope.Active() && context != nullptr) hotpack::RetireContext(context, alive);
} catch (...) {
}

CUcontext PrimaryContext(CUdevice device) {
  return device >= 0 && device < kDevices ? primary_contexts[device].load() : nullptr;
}

bool PrimaryIsActive(CUdevice device) {
  const hotpack::CudaDriver* driver = hotpack::Driver();
  unsigned int flags = 0;
  int active = 1;
  if (driver == nullptr || driver->DevicePrimaryCtxGetState == nullptr) return true;
  return driver->DevicePrimaryCtxGetState(device, &flags, &active) != CUDA_SUCCESS || active != 0;
}

// Several users may hold the primary context; it ends with the last release.
template <typename ReleasePrimary>
CUresult Release(CUdevice device, ReleasePrimary release) {
  HookScope scope;
  const CUresult result = release();
  if (scope.Active() && result == CUDA_SUCCESS && !PrimaryIsActive(device)) {
    Retire(scope, PrimaryContext(device), false);
  }
  return result;
}

// The driver comes first: it waits for the work in the context, and it may refuse.
template <typename ResetPrimary>
CUresult Reset(CUdevice device, ResetPrimary reset) {
  HookScope scope;
  const bool active = scope.Active() && PrimaryIsActive(device);
  const CUresult result = reset();
  if (active && result == CUDA_SUCCESS) Retire(scope, PrimaryContext(device), false);
  return result;
}

template <typename Destroy>
CUresult DestroyContext(CUcontext context, Destroy destroy) {
  HookScope scope;
  const CUresult result = destroy();
  if (result == CUDA_SUCCESS) Retire(scope, context, false);
  return result;
}

}  // namespace

CUresult Hook_cuCtxCreate_v2(CUcontext* context, unsigned int flags, CUdevice device) {
  HookScope scope;
  const CUresult result = HOTPACK_NEXT(cuCtxCreate_v2)(context, flags, device);
  Note(scope, result, context);
  return result;
}

CUresult Hook_cuCtxCreate_v3(CUcontext* context, CUexecAffinityParam* affinity, int count, unsigned int flags,
                             CUdevice device) {
  HookScope scope;
  const CUresult result = HOTPACK_NEXT(cuCtxCreate_v3)(context, affinity, count, flags, device);
  Note(scope, result, context);
  return result;
}

CUresult Hook_cuCtxCreate_v4(CUcontext* context, CUctxCreateParams* parameters, unsigned int flags, CUdevice device) {
  HookScope scope;
  const CUresult result = HOTPACK_NEXT(cuCtxCreate_v4)(context, parameters, flags, device);
  Note(scope, result, context);
  return result;
}

CUresult Hook_cuCtxDestroy(CUcontext context) {
  return DestroyContext(context, [=] { return HOTPACK_NEXT(cuCtxDestroy)(context); });
}

CUresult Hook_cuCtxDestroy_v2(CUcontext context) {
  return DestroyContext(context, [=] { return HOTPACK_NEXT(cuCtxDestroy_v2)(context); });
}

CUresult Hook_cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  HookScope scope;
  const CUresult result = HOTPACK_NEXT(cuDevicePrimaryCtxRetain)(context, device);
  if (scope.Active() && result == CUDA_SUCCESS && device >= 0 && device < kDevices) {
    primary_contexts[device].store(*context);
  }
  Note(scope, result, context);
  return result;
}

CUresult Hook_cuDevicePrimaryCtxRelease(CUdevice device) {
  return Release(device, [=] { return HOTPACK_NEXT(cuDevicePrimaryCtxRelease)(device); });
}

CUresult Hook_cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return Release(device, [=] { return HOTPACK_NEXT(cuDevicePrimaryCtxRelease_v2)(device); });
}

CUresult Hook_cuDevicePrimaryCtxReset(CUdevice device) {
  return Reset(device, [=] { return HOTPACK_NEXT(cuDevicePrimaryCtxReset)(device); });
}

CUresult Hook_cuDevicePrimaryCtxReset_v2(CUdevice device) {
  return Reset(device, [=] { return HOTPACK_NEXT(cuDevicePrimaryCtxReset_v2)(device); });
}
