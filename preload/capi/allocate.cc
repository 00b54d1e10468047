// hotpack_malloc, its releases and uses, hotpack_trim: the same rules as for the driver hooks. The rest of the C
// interface is in runtime/process/c_api.cc.
#include "preload/serve/allocate.h"

#include "preload/process/driver_access.h"
#include "preload/process/hook_scope.h"
#include "preload/serve/device_limits.h"
#include "preload/serve/driver_blocks.h"
#include "preload/serve/out_of_memory.h"
#include "preload/serve/recorder.h"
#include "runtime/include/hotpack.h"

namespace {

int Malloc(void** pointer, size_t bytes, CUstream stream) {
  const hotpack::CudaDriver* driver = hotpack::Driver();
  if (driver == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  CUdeviceptr address = 0;
  hotpack::HookScope scope;
  hotpack::DeviceAddress served = 0;
  if (scope.Active()) hotpack::Order().Named(stream);
  if (scope.Active() && hotpack::AllocateAsync(bytes, stream, &served, !hotpack::Order().Promised())) {
    *pointer = reinterpret_cast<void*>(served);
    return CUDA_SUCCESS;
  }
  CUresult result = CUDA_SUCCESS;
  const hotpack::ContextArena* arena =
      scope.Active() ? hotpack::Arenas().Find(hotpack::CurrentContext(*driver)) : nullptr;
  if (arena != nullptr && hotpack::BeyondLimit(arena, bytes)) {
    hotpack::NoteOutOfMemory(arena->memory->device(), bytes);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  const auto ask = [&] { return result = hotpack::BlocksOfDriver().Allocate(*driver, &address, bytes, stream); };
  result = hotpack::RetryAfterTrim(scope, nullptr, bytes, ask);
  hotpack::RecordAnswer(result, &address);
  if (result == CUDA_SUCCESS) *pointer = reinterpret_cast<void*>(address);
  return result;
}

int Free(void* pointer, CUstream stream, hotpack::ReleaseKind kind) {
  const hotpack::CudaDriver* driver = hotpack::Driver();
  if (driver == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  const auto address = reinterpret_cast<CUdeviceptr>(pointer);
  CUresult result = CUDA_SUCCESS;
  hotpack::HookScope scope;
  if (scope.Active()) hotpack::Order().Named(stream);
  if (scope.Active() && hotpack::Release(address, stream, &result, kind)) return result;
  return hotpack::BlocksOfDriver().Free(*driver, address, stream, kind);
}

int FreeAs(hotpack::ReleaseKind kind, void* pointer, void* stream) {
  if (pointer == nullptr) return CUDA_SUCCESS;
  try {
    return Free(pointer, static_cast<CUstream>(stream), kind);
  } catch (...) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
}

}  // namespace

extern "C" {

int hotpack_malloc(void** pointer, size_t bytes, void* stream) {
  if (pointer == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  try {
    return Malloc(pointer, bytes, static_cast<CUstream>(stream));
  } catch (...) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
}

int hotpack_free(void* pointer, void* stream) { return FreeAs(hotpack::ReleaseKind::kOrdered, pointer, stream); }

int hotpack_free_pooled(void* pointer, void* stream) { return FreeAs(hotpack::ReleaseKind::kPooled, pointer, stream); }

int hotpack_record_use(void* pointer, void* stream) {
  const auto address = reinterpret_cast<CUdeviceptr>(pointer);
  hotpack::HookScope scope;
  hotpack::ContextArena* arena = scope.Active() ? hotpack::Arenas().FindOwner(address) : nullptr;
  try {
    if (arena == nullptr) {
      const bool found = hotpack::BlocksOfDriver().RecordUse(address, static_cast<CUstream>(stream));
      return found ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
    }
    hotpack::DeviceAddress base = 0;
    uint64_t bytes = 0;
    if (!arena->engine->FindBlock(address, &base, &bytes)) return CUDA_ERROR_NOT_FOUND;
    hotpack::Order().RecordUse(base, arena->context, static_cast<CUstream>(stream));
    return CUDA_SUCCESS;
  } catch (...) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
}

uint64_t hotpack_trim(void) {
  uint64_t given = 0;
  hotpack::HookScope scope;
  try {
    hotpack::Arenas().ForEach([&](hotpack::ContextArena* arena) { given += arena->engine->Trim(); });
    if (const hotpack::CudaDriver* driver = hotpack::Driver()) hotpack::BlocksOfDriver().Trim(*driver);
  } catch (...) {
    // Out of host memory for the lists of blocks to give back.
  }
  return given;
}

}  // extern "C"
