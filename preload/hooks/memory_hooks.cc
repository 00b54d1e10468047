// The hooks that serve device memory. Requests that hotpack does not serve pass through to the driver.
#include <algorithm>
#include <atomic>

#include "preload/hooks/hook_table.h"
#include "preload/hooks/pitch.h"
#include "preload/process/driver_access.h"
#include "preload/process/hook_scope.h"
#include "preload/serve/allocate.h"
#include "preload/serve/caller_exclusions.h"
#include "preload/serve/device_limits.h"
#include "preload/serve/out_of_memory.h"
#include "preload/serve/recorder.h"

using hotpack::DeviceAddress;
using hotpack::HookScope;
using hotpack::RetryAfterTrim;

namespace {

// Set once the program makes a pool other than the default one current on some device, or limits the default one.
constinit std::atomic<bool> other_pool_made_current{false};

// Devices, a bit each, whose default pool must not insert waits between streams. hotpack's order between streams does.
constinit std::atomic<uint64_t> pools_without_waits{0};
constexpr int kDeviceBits = 64;

CUstream PerThread(CUstream stream) { return stream == nullptr ? CU_STREAM_PER_THREAD : stream; }

// A program's own pool has limits, access rights and export handles that the arena lacks.
bool IsDefaultPool(CUmemoryPool pool) {
  const hotpack::CudaDriver* driver = hotpack::Driver();
  CUdevice device = 0;
  CUmemoryPool default_pool = nullptr;
  return driver != nullptr && driver->DeviceGetDefaultMemPool != nullptr &&
         driver->CtxGetDevice(&device) == CUDA_SUCCESS &&
         driver->DeviceGetDefaultMemPool(&default_pool, device) == CUDA_SUCCESS && default_pool == pool;
}

// Notes for which devices the pool is the default one, and may not insert waits.
void NoteInternalDependencies(CUmemoryPool pool, bool allowed) {
  const hotpack::CudaDriver* driver = hotpack::Driver();
  int devices = 0;
  if (driver == nullptr || driver->DeviceGetDefaultMemPool == nullptr || driver->DeviceGetCount == nullptr) return;
  if (driver->DeviceGetCount(&devices) != CUDA_SUCCESS) return;
  for (int device = 0; device < std::min(devices, kDeviceBits); ++device) {
    CUmemoryPool own = nullptr;
    if (driver->DeviceGetDefaultMemPool(&own, device) != CUDA_SUCCESS || own != pool) continue;
    const uint64_t bit = uint64_t{1} << device;
    allowed ? pools_without_waits.fetch_and(~bit) : pools_without_waits.fetch_or(bit);
    other_pool_made_current.store(true, std::memory_order_relaxed);  // from now on requests are checked
  }
}

bool MayInsertWaits() {
  const uint64_t without = pools_without_waits.load(std::memory_order_relaxed);
  CUdevice device = 0;
  const hotpack::CudaDriver* driver = hotpack::Driver();
  return without == 0 || (driver != nullptr && driver->CtxGetDevice(&device) == CUDA_SUCCESS && device < kDeviceBits &&
                          (without >> device & 1) == 0);
}

bool CurrentPoolIsDefault() {
  if (!other_pool_made_current.load(std::memory_order_relaxed)) return true;
  const hotpack::CudaDriver* driver = hotpack::Driver();
  CUdevice device = 0;
  CUmemoryPool pool = nullptr;
  return driver != nullptr && driver->DeviceGetMemPool != nullptr && driver->CtxGetDevice(&device) == CUDA_SUCCESS &&
         driver->DeviceGetMemPool(&pool, device) == CUDA_SUCCESS && IsDefaultPool(pool) && MayInsertWaits();
}

// Returns true if it served the request and set *address. The engine does not throw by contract; a bad_alloc on the way
// there ends here.
bool Serve(CUdeviceptr* address, size_t bytes, const void* caller) noexcept try {
  DeviceAddress served = 0;
  if (address == nullptr || bytes == 0) return false;
  if (hotpack::IsLeftToDriver(caller, bytes)) [[unlikely]] {
    hotpack::NotePassedThrough();
    return false;
  }
  if (!hotpack::Allocate(bytes, &served)) return false;
  *address = served;
  return true;
} catch (...) {
  return false;
}

// Serves a request in stream order if `from_default_pool()`: the others are the driver's.
template <typename Predicate>
bool ServeAsync(CUdeviceptr* address, size_t bytes, CUstream stream, Predicate from_default_pool) noexcept try {
  DeviceAddress served = 0;
  if (address == nullptr || bytes == 0) return false;
  if (!from_default_pool()) {
    hotpack::NotePassedThrough();
    return false;
  }
  if (!hotpack::AllocateAsync(bytes, stream, &served)) return false;
  *address = served;
  return true;
} catch (...) {
  return false;
}

bool ServeFromCurrentPool(CUdeviceptr* address, size_t bytes, CUstream stream) noexcept {
  return ServeAsync(address, bytes, stream, [] { return CurrentPoolIsDefault(); });
}

bool ServeFromPool(CUdeviceptr* address, size_t bytes, CUmemoryPool pool, CUstream stream) noexcept {
  return ServeAsync(address, bytes, stream, [=] { return IsDefaultPool(pool) && MayInsertWaits(); });
}

// Returns the driver's answer to a request that was not served.
template <typename Call>
CUresult Ask(const HookScope& scope, const char* name, const CUdeviceptr* address, size_t bytes, Call call) {
  if (scope.Active() && hotpack::BeyondLimitOption(bytes)) {
    hotpack::ReportOutOfMemory(hotpack::kCurrentDevice, name, bytes);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  const CUresult result = RetryAfterTrim(scope, name, bytes, call);
  hotpack::RecordAnswer(result, address);
  return result;
}

bool GiveBack(CUdeviceptr address, CUstream stream, CUresult* result) noexcept try {
  return hotpack::Release(address, stream, result);
} catch (...) {
  *result = CUDA_ERROR_OUT_OF_MEMORY;  // no host memory to quarantine the block: it stays live
  return true;
}

}  // namespace

CUresult Hook_cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
  HookScope scope;
  if (scope.Active() && Serve(address, bytes, __builtin_return_address(0))) return CUDA_SUCCESS;
  return Ask(scope, "cuMemAlloc", address, bytes, [=] { return HOTPACK_NEXT(cuMemAlloc_v2)(address, bytes); });
}

CUresult Hook_cuMemAllocPitch_v2(CUdeviceptr* address, size_t* pitch, size_t width, size_t height,
                                 unsigned int element) {
  HookScope scope;
  const auto next = HOTPACK_NEXT(cuMemAllocPitch_v2);
  size_t row = 0;
  if (scope.Active() && address != nullptr && pitch != nullptr && height > 0 &&
      hotpack::LearnPitch(next, HOTPACK_NEXT(cuMemFree_v2), width, element, &row) && height <= SIZE_MAX / row &&
      Serve(address, row * height, __builtin_return_address(0))) {
    *pitch = row;
    return CUDA_SUCCESS;
  }
  return Ask(scope, "cuMemAllocPitch", address, hotpack::kUnknownBytes,
             [=] { return next(address, pitch, width, height, element); });
}

CUresult Hook_cuMemFree_v2(CUdeviceptr address) {
  HookScope scope;
  CUresult result = CUDA_SUCCESS;
  if (scope.Active() && address != 0 && GiveBack(address, hotpack::kNoStream, &result)) return result;
  return HOTPACK_NEXT(cuMemFree_v2)(address);
}

CUresult Hook_cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* size, CUdeviceptr address) {
  HookScope scope;
  hotpack::ContextArena* arena = scope.Active() ? hotpack::Arenas().FindOwner(address) : nullptr;
  if (arena == nullptr) return HOTPACK_NEXT(cuMemGetAddressRange_v2)(base, size, address);
  DeviceAddress start = 0;
  uint64_t bytes = 0;
  if (!arena->engine->FindBlock(address, &start, &bytes)) return CUDA_ERROR_NOT_FOUND;
  if (base != nullptr) *base = start;
  if (size != nullptr) *size = bytes;
  return CUDA_SUCCESS;
}

CUresult Hook_cuMemAllocAsync(CUdeviceptr* address, size_t bytes, CUstream stream) {
  HookScope scope;
  if (scope.Active() && ServeFromCurrentPool(address, bytes, stream)) return CUDA_SUCCESS;
  return Ask(scope, "cuMemAllocAsync", address, bytes,
             [=] { return HOTPACK_NEXT(cuMemAllocAsync)(address, bytes, stream); });
}

CUresult Hook_cuMemAllocAsync_ptsz(CUdeviceptr* address, size_t bytes, CUstream stream) {
  HookScope scope;
  if (scope.Active() && ServeFromCurrentPool(address, bytes, PerThread(stream))) return CUDA_SUCCESS;
  return Ask(scope, "cuMemAllocAsync", address, bytes,
             [=] { return HOTPACK_NEXT(cuMemAllocAsync_ptsz)(address, bytes, stream); });
}

CUresult Hook_cuMemAllocFromPoolAsync(CUdeviceptr* address, size_t bytes, CUmemoryPool pool, CUstream stream) {
  HookScope scope;
  if (scope.Active() && ServeFromPool(address, bytes, pool, stream)) return CUDA_SUCCESS;
  return Ask(scope, "cuMemAllocFromPoolAsync", address, bytes,
             [=] { return HOTPACK_NEXT(cuMemAllocFromPoolAsync)(address, bytes, pool, stream); });
}

CUresult Hook_cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* address, size_t bytes, CUmemoryPool pool, CUstream stream) {
  HookScope scope;
  if (scope.Active() && ServeFromPool(address, bytes, pool, PerThread(stream))) return CUDA_SUCCESS;
  return Ask(scope, "cuMemAllocFromPoolAsync", address, bytes,
             [=] { return HOTPACK_NEXT(cuMemAllocFromPoolAsync_ptsz)(address, bytes, pool, stream); });
}

CUresult Hook_cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  HookScope scope;
  CUresult result = CUDA_SUCCESS;
  if (scope.Active() && GiveBack(address, stream, &result)) return result;
  return HOTPACK_NEXT(cuMemFreeAsync)(address, stream);
}

CUresult Hook_cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream stream) {
  HookScope scope;
  CUresult result = CUDA_SUCCESS;
  if (scope.Active() && GiveBack(address, PerThread(stream), &result)) return result;
  return HOTPACK_NEXT(cuMemFreeAsync_ptsz)(address, stream);
}

CUresult Hook_cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
  HookScope scope;
  if (scope.Active()) other_pool_made_current.store(true, std::memory_order_relaxed);
  return HOTPACK_NEXT(cuDeviceSetMemPool)(device, pool);
}

CUresult Hook_cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  HookScope scope;
  const CUresult result = HOTPACK_NEXT(cuMemPoolSetAttribute)(pool, attribute, value);
  if (scope.Active() && result == CUDA_SUCCESS && attribute == CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES) {
    NoteInternalDependencies(pool, *static_cast<const int*>(value) != 0);
  }
  return result;
}

CUresult Hook_cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type, CUmemoryPool pool) {
  HookScope scope;
  if (scope.Active()) other_pool_made_current.store(true, std::memory_order_relaxed);
  return HOTPACK_NEXT(cuMemSetMemPool)(location, type, pool);
}
