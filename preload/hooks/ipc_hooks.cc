// cuIpcGetMemHandle. Opening and closing handles needs no hook: they concern another process's memory.
#include "preload/hooks/hook_table.h"
#include "preload/process/driver_access.h"
#include "preload/process/hook_scope.h"
#include "preload/process/log.h"
#include "preload/serve/caller_exclusions.h"
#include "preload/serve/ipc_exclusions.h"
#include "runtime/process/arena_table.h"

using hotpack::DeviceAddress;

namespace {

// Returns true if the address belongs to an arena, so that no handle is possible.
bool Refuse(CUdeviceptr address) noexcept try {
  hotpack::ContextArena* arena = hotpack::Arenas().FindOwner(address);
  if (arena == nullptr) return false;
  DeviceAddress base = 0;
  uint64_t bytes = 0;
  const bool live = arena->engine->FindBlock(address, &base, &bytes);
  // Without hotpack, memory of a pool has no such handles either.
  if (!live || arena->origins.OfPool(base) || !hotpack::ExcludeSize(bytes)) return true;
  hotpack::ForgetServedCaller();
  char sizes[256];
  hotpack::ListExcludedSizes(sizes, sizeof(sizes));
  hotpack::Log(
      "cuIpcGetMemHandle: a block of %llu bytes lies in the arena, whose memory has no IPC handles; the call fails. "
      "Blocks of this size come from the driver from now on, in the next run from the start with HOTPACK_IPC=%s",
      static_cast<unsigned long long>(bytes), sizes);
  return true;
} catch (...) {
  return true;
}

}  // namespace

CUresult Hook_cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr address) {
  hotpack::HookScope scope;
  if (scope.Active() && Refuse(address)) return CUDA_ERROR_INVALID_VALUE;
  return HOTPACK_NEXT(cuIpcGetMemHandle)(handle, address);
}
