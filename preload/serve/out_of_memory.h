// On out of memory: trims what hotpack holds idle and retries the call. If the retries fail, the program gets the
// driver's own error, and one line on stderr reports who holds what.
#pragma once

#include "preload/process/driver_access.h"
#include "preload/process/hook_scope.h"
#include "runtime/process/arena_table.h"

namespace hotpack {

inline constexpr uint64_t kUnknownBytes = UINT64_MAX;
inline constexpr CUdevice kCurrentDevice = -1;

// Trims the idle memory of the device's other arenas by what `arena` lacks. Returns true if that freed memory, so that
// a retry may succeed. Waits for the device as far as that is possible now.
bool TrimOtherArenas(const ContextArena* arena, uint64_t bytes) noexcept;

// Trims after a call that asked for `bytes` (kUnknownBytes: known only to the driver) on `device` ran out of memory.
// `attempt` counts from 0: the first frees about as much as was asked for, the next everything idle. Returns false if
// nothing is idle or if it would not be enough.
bool TrimDevice(CUdevice device, uint64_t bytes, int attempt) noexcept;

// Describes why `call` failed: the request, and who holds what on the device. Writes one line without its end, at most
// `size` bytes with the closing zero. Returns its length, 0 if the driver reports nothing about the device. Makes
// driver calls.
size_t DescribeOutOfMemory(CUdevice device, const char* call, uint64_t bytes, char* text, size_t size) noexcept;

// Notes in the process's statistics file that a request for `bytes` bytes (kUnknownBytes: known only to the driver) on
// `device` found no memory. Makes driver calls.
void NoteOutOfMemory(CUdevice device, uint64_t bytes) noexcept;

// Reports in one line on stderr why `call` failed: the request, and who holds what on the device. At most one line in
// ten seconds; suppressed ones are counted. Makes driver calls.
void ReportOutOfMemory(CUdevice device, const char* call, uint64_t bytes) noexcept;

// Calls `call()` -> CUresult. Trims and retries it on CUDA_ERROR_OUT_OF_MEMORY, at most twice. A refused driver call
// has no effect, so a retry is safe. `name`: of the call, for the error line on stderr; null: no line.
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
  NoteOutOfMemory(device, bytes);
  if (name != nullptr) ReportOutOfMemory(device, name, bytes);
  return result;
}

}  // namespace hotpack
