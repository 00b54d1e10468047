// The hooks of contexts. An arena belongs to a context, but its memory (cuMemCreate) does not end with it (cuda.h,
// cuCtxDestroy). So these hooks return the memory when the context ends.
//
// - cuCtxDestroy: after the driver has agreed, since it refuses some contexts (a primary one).
// - cuDevicePrimaryCtxReset: before the driver call. It takes all resources of the device's context, and its
//   documentation does not tell whether those include cuMemCreate's.
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <optional>

#include "preload/hooks/hook_table.h"
#include "preload/hooks/peer_copies.h"
#include "preload/process/current_scope.h"
#include "preload/process/driver_access.h"
#include "preload/process/hook_scope.h"
#include "preload/serve/allocate.h"
#include "preload/streams/green_contexts.h"

using hotpack::HookScope;

namespace {

constexpr int kDevices = 64;
constinit std::atomic<CUcontext> primary_contexts[kDevices] = {};

void Note(const HookScope& scope, CUresult result, const CUcontext* context, CUdevice device) noexcept try {
  if (scope.Active() && result == CUDA_SUCCESS && context != nullptr && *context != nullptr) {
    hotpack::NoteContextDevice(device);
    hotpack::Order().NoteContext(*context);
  }
} catch (...) {
}

// destroy() -> CUresult calls the driver.
template <typename Call>
CUresult Destroy(CUcontext context, Call destroy) {
  HookScope scope;
  if (!scope.Active() || context == nullptr) return destroy();
  hotpack::ContextEnd end(context);
  end.Prepare();
  const CUresult result = destroy();
  try {
    result == CUDA_SUCCESS ? end.Retire(false) : end.Cancel();
  } catch (...) {
  }
  return result;
}

CUcontext PrimaryContext(CUdevice device) {
  return device >= 0 && device < kDevices ? primary_contexts[device].load() : nullptr;
}

// Held while primary contexts are retained, and from a release until it is known whether that was the last one. A
// retain in between would make a new context, and the release would then take its arena for the old one's. A forked
// child finds its parent's number and ignores it.
class PrimaryLock {
 public:
  PrimaryLock() {
    const pid_t self = getpid();
    for (pid_t owner = 0; !owner_.compare_exchange_weak(owner, self); owner = owner == self ? 0 : owner) {
      if (owner == self) sched_yield();
    }
  }
  ~PrimaryLock() { owner_.store(0); }
  PrimaryLock(const PrimaryLock&) = delete;
  PrimaryLock& operator=(const PrimaryLock&) = delete;

 private:
  static constinit std::atomic<pid_t> owner_;
};
constinit std::atomic<pid_t> PrimaryLock::owner_ = 0;

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
  const CUcontext context = scope.Active() ? PrimaryContext(device) : nullptr;
  if (context == nullptr) return release();
  hotpack::ContextEnd end(context);
  CUresult result = CUDA_SUCCESS;
  bool was_last = false;
  {
    const PrimaryLock lock;
    result = release();
    was_last = result == CUDA_SUCCESS && !PrimaryIsActive(device);
  }
  if (was_last) end.Retire(false);
  return result;
}

// The driver comes first: it waits for the work in the context, and it may refuse.
template <typename ResetPrimary>
CUresult Reset(CUdevice device, ResetPrimary reset) {
  HookScope scope;
  const CUcontext context = scope.Active() && PrimaryIsActive(device) ? PrimaryContext(device) : nullptr;
  if (context == nullptr) return reset();
  hotpack::ContextEnd end(context);
  end.Prepare();
  end.Retire(true);
  const CUresult result = reset();
  if (result != CUDA_SUCCESS) {
    try {
      end.Cancel();
    } catch (...) {
    }
  }
  return result;
}

// Null: none.
CUcontext FromGreen(CUgreenCtx green) {
  const hotpack::CudaDriver* driver = hotpack::Driver();
  CUcontext context = nullptr;
  const bool found = driver != nullptr && driver->CtxFromGreenCtx != nullptr &&
                     driver->CtxFromGreenCtx(&context, green) == CUDA_SUCCESS;
  return found ? context : nullptr;
}

// Waits for the context's work. Returns false if it cannot be made current. A capture on another context goes on.
bool FinishWork(CUcontext context, CUdevice* device) {
  const hotpack::CudaDriver* driver = hotpack::Driver();
  const hotpack::CurrentScope current(*driver, context);
  const hotpack::RelaxedCaptureMode relaxed(*driver);
  if (!current || driver->CtxGetDevice(device) != CUDA_SUCCESS) return false;
  driver->CtxSynchronize();
  return true;
}

}  // namespace

CUresult Hook_cuCtxCreate_v2(CUcontext* context, unsigned int flags, CUdevice device) {
  HookScope scope;
  const CUresult result = HOTPACK_NEXT(cuCtxCreate_v2)(context, flags, device);
  Note(scope, result, context, device);
  return result;
}

CUresult Hook_cuCtxCreate_v3(CUcontext* context, CUexecAffinityParam* affinity, int count, unsigned int flags,
                             CUdevice device) {
  HookScope scope;
  const CUresult result = HOTPACK_NEXT(cuCtxCreate_v3)(context, affinity, count, flags, device);
  Note(scope, result, context, device);
  return result;
}

CUresult Hook_cuCtxCreate_v4(CUcontext* context, CUctxCreateParams* parameters, unsigned int flags, CUdevice device) {
  HookScope scope;
  const CUresult result = HOTPACK_NEXT(cuCtxCreate_v4)(context, parameters, flags, device);
  Note(scope, result, context, device);
  return result;
}

CUresult Hook_cuCtxDestroy(CUcontext context) {
  return Destroy(context, [=] { return HOTPACK_NEXT(cuCtxDestroy)(context); });
}

CUresult Hook_cuCtxDestroy_v2(CUcontext context) {
  return Destroy(context, [=] { return HOTPACK_NEXT(cuCtxDestroy_v2)(context); });
}

CUresult Hook_cuGreenCtxCreate(CUgreenCtx* green, CUdevResourceDesc resources, CUdevice device, unsigned int flags) {
  HookScope scope;
  const auto create = [=] {
    const PrimaryLock lock;  // it retains the primary context
    return HOTPACK_NEXT(cuGreenCtxCreate)(green, resources, device, flags);
  };
  const CUresult result = create();
  if (!scope.Active() || result != CUDA_SUCCESS) return result;
  try {
    const CUcontext context = FromGreen(*green);
    const CUcontext primary = hotpack::Greens().OwnerOf(context);
    if (context == nullptr || primary == context) return result;
    if (device >= 0 && device < kDevices) primary_contexts[device].store(primary);
    Note(scope, result, &primary, device);
    Note(scope, result, &context, device);
  } catch (...) {
  }
  return result;
}

// The driver does not wait for the green context's work, and takes no call with its streams and events any more. So the
// host waits before. The memory stays: it is the primary context's, which may end with its last green one.
CUresult Hook_cuGreenCtxDestroy(CUgreenCtx green) {
  HookScope scope;
  const auto destroy = [=] { return HOTPACK_NEXT(cuGreenCtxDestroy)(green); };
  const CUcontext context = scope.Active() ? FromGreen(green) : nullptr;
  CUdevice device = 0;
  if (context == nullptr || !FinishWork(context, &device)) return destroy();
  hotpack::ContextEnd end(context);
  end.Prepare();
  const CUcontext primary = PrimaryContext(device);
  std::optional<hotpack::ContextEnd> primary_end;
  if (primary != nullptr) primary_end.emplace(primary);
  CUresult result = CUDA_SUCCESS;
  bool was_last = false;
  {
    const PrimaryLock lock;
    result = destroy();
    was_last = result == CUDA_SUCCESS && !PrimaryIsActive(device);
  }
  try {
    if (result == CUDA_SUCCESS) {
      hotpack::Greens().Forget(context);
      end.Retire(false);
      if (was_last && primary_end) primary_end->Retire(false);
    } else {
      end.Cancel();
    }
  } catch (...) {
  }
  return result;
}

CUresult Hook_cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  HookScope scope;
  const auto retain = [=] {
    const PrimaryLock lock;
    return HOTPACK_NEXT(cuDevicePrimaryCtxRetain)(context, device);
  };
  const CUresult result = retain();
  if (scope.Active() && result == CUDA_SUCCESS && device >= 0 && device < kDevices) {
    primary_contexts[device].store(*context);
    // Another thread may be in the last release of the previous context, which usually has the same handle. Requests in
    // the new context must not come from the arena that is ending.
    while (hotpack::Arenas().IsEnding(*context)) sched_yield();
  }
  Note(scope, result, context, device);
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
