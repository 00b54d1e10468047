// When there is no memory: what hotpack holds without need is given back and the call made again; if that does not
// help, the program gets the driver's own error, and one line on stderr says who has what.
#pragma once

#include "preload/process/driver_access.h"
#include "preload/process/hook_scope.h"
#include "runtime/process/arena_table.h"

namespace hotpack {

inline constexpr uint64_t kUnknownBytes = UINT64_MAX;
inline constexpr CUdevice kCurrentDevice = -1;

// What an arena lacks is taken from the idle memory of the device's other ones. True: something was given back, so that
// another attempt may succeed. Waits for the device as far as that is possible now.
bool TrimOtherArenas(const ContextArena* arena, uint64_t bytes) noexcept;

// A call that asked for `bytes` (kUnknownBytes: the driver alone knows) on `device` has run out of memory. `attempt`
// counts from 0: first about as much is given back as was asked for, then everything idle. False: there is nothing to
// give back, or it would not be enough.
bool TrimDevice(CUdevice device, uint64_t bytes, int attempt) noexcept;

// Why `call` failed: what was asked for, and who holds what on the device; one line without its end, at most `size`
// bytes with the closing zero. Returns its length, 0 if the driver says nothing of the device. Makes driver calls.
size_t DescribeOutOfMemory(CUdevice device, const char* call, uint64_t bytes, char* text, size_t size) noexcept;

// Says on stderr, in one line, why `call` failed: what was asked for, and who holds what on the device. Once in ten
// seconds at most; what was left out meanwhile is counted. Makes driver calls.
void ReportOutOfMemory(CUdevice device, const char* call, uint64_t bytes) noexcept;

// `name`: of the call, for the line on stderr if it fails all the same; null: nothing is said.
// `call()` -> CUresult, made again with more room if it gives CUDA_ERROR_OUT_OF_MEMORY: twice at most. A call that the
// driver has refused has no effect, so it may be made again.
template <typename Call>
CUresult RetryAfterTrim(const HookScope& scope, const char* name, uint64_t bytes, Call call,
                        CUdevice device = kCurrentDevice) {
  CUresult result = call();
  if (result != CUDA_ERROR_OUT_OF_MEMORY || !scope.Active()) [[likely]]
    return result;
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (!TrimDevice(device, bytes, attempt)) continue;
    result = call();
    if (result != CUDA_ERROR_OUT_OF_MEMORY) return result;
  }
  if (name != nullptr) ReportOutOfMemory(device, name, bytes);
  return result;
}

}  // namespace hotpack
