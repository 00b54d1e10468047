// The arena holds the default pool's memory, so a program that shrinks that pool shrinks the arena.
#include <algorithm>

#include "preload/hooks/hook_table.h"
#include "preload/process/driver_access.h"
#include "preload/process/hook_scope.h"
#include "runtime/process/arena_table.h"

namespace {

// Gives back what the arenas of the pool's device hold idle beyond `keep` bytes.
void Shrink(CUmemoryPool pool, size_t keep) noexcept try {
  const hotpack::CudaDriver* driver = hotpack::Driver();
  if (driver == nullptr || driver->DeviceGetDefaultMemPool == nullptr) return;
  hotpack::Arenas().ForEach([&](hotpack::ContextArena* arena) {
    CUmemoryPool own = nullptr;
    if (driver->DeviceGetDefaultMemPool(&own, arena->memory->device()) != CUDA_SUCCESS || own != pool) return;
    const uint64_t held = arena->engine->Usage().held;
    arena->engine->Trim(held - std::min<uint64_t>(held, keep));
  });
} catch (...) {
}

}  // namespace

CUresult Hook_cuMemPoolTrimTo(CUmemoryPool pool, size_t keep) {
  hotpack::HookScope scope;
  const CUresult result = HOTPACK_NEXT(cuMemPoolTrimTo)(pool, keep);
  if (scope.Active() && result == CUDA_SUCCESS) Shrink(pool, keep);
  return result;
}
