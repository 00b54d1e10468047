// Access by other devices. The driver grants it for memory of cuMemAlloc (cuCtxEnablePeerAccess) and of pools
// (cuMemPoolSetAccess). In virtual memory each mapping has its own access rights (cuMemSetAccess). So an arena follows
// the program's calls. It has one kind of memory: either call gives the device access to all of it. The access is never
// withdrawn (cuCtxDisablePeerAccess), which harms no program that keeps to the access that it asked for.
#include "preload/hooks/hook_table.h"
#include "preload/process/driver_access.h"
#include "preload/process/hook_scope.h"
#include "preload/serve/allocate.h"

using hotpack::ContextArena;
using hotpack::HookScope;

namespace {

// Makes the arena if there is none yet: its memory is then ready for the peer from the first page on.
void Enable(CUcontext peer) noexcept try {
  const hotpack::CudaDriver* driver = hotpack::Driver();
  CUdevice device = 0;
  if (driver == nullptr || driver->CtxGetDevice(&device) != CUDA_SUCCESS) return;
  if (ContextArena* arena = hotpack::ArenaFor(peer)) arena->memory->AddPeer(device);
} catch (...) {
}

// Enables access for every context's arena on the pool's device. First makes the current context's arena if there is
// none yet.
void EnableForPool(CUmemoryPool pool, const CUmemAccessDesc* map, size_t count) noexcept try {
  const hotpack::CudaDriver* driver = hotpack::Driver();
  if (driver == nullptr || driver->DeviceGetDefaultMemPool == nullptr) return;
  hotpack::ArenaFor(hotpack::CurrentContext(*driver));
  hotpack::Arenas().ForEach([&](ContextArena* arena) {
    CUmemoryPool own = nullptr;
    if (driver->DeviceGetDefaultMemPool(&own, arena->memory->device()) != CUDA_SUCCESS || own != pool) return;
    for (size_t i = 0; i < count; ++i) {
      const bool device = map[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE;
      if (device && map[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE) arena->memory->AddPeer(map[i].location.id);
    }
  });
} catch (...) {
}

}  // namespace

CUresult Hook_cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags) {
  HookScope scope;
  const CUresult result = HOTPACK_NEXT(cuCtxEnablePeerAccess)(peer, flags);
  if (scope.Active() && result == CUDA_SUCCESS) Enable(peer);
  return result;
}

CUresult Hook_cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* map, size_t count) {
  HookScope scope;
  const CUresult result = HOTPACK_NEXT(cuMemPoolSetAccess)(pool, map, count);
  if (scope.Active() && result == CUDA_SUCCESS && map != nullptr) EnableForPool(pool, map, count);
  return result;
}
