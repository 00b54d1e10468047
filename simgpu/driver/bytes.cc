// Copies and sets the bytes of the simulated memory. Device memory that was never written is zero and takes no host
// memory, so copying or setting zeros there does nothing.
#include <algorithm>
#include <cstring>

#include "simgpu/driver/state.h"

namespace simgpu {

CUresult MoveBytes(Driver& d, uint64_t to, uint64_t from, uint64_t bytes) {
  while (bytes > 0) {
    const Span source = d.memory.Bytes(from, false);
    Span target = d.memory.Bytes(to, false);
    if (!source.ok || !target.ok) return CUDA_ERROR_INVALID_VALUE;
    const uint64_t step = std::min({bytes, source.bytes, target.bytes});
    if (source.data != nullptr || target.data != nullptr) {
      target = d.memory.Bytes(to, true);
      if (!target.ok) return CUDA_ERROR_OUT_OF_MEMORY;
      if (source.data != nullptr) {
        memmove(target.data, source.data, step);
      } else {
        memset(target.data, 0, step);
      }
    }
    to += step;
    from += step;
    bytes -= step;
  }
  return CUDA_SUCCESS;
}

CUresult FillBytes(Driver& d, uint64_t to, const void* pattern, unsigned pattern_bytes, uint64_t bytes) {
  const char* unit = static_cast<const char*>(pattern);
  const bool zero = std::all_of(unit, unit + pattern_bytes, [](char c) { return c == 0; });
  const bool same = std::all_of(unit, unit + pattern_bytes, [&](char c) { return c == unit[0]; });
  for (uint64_t done = 0; done < bytes;) {
    Span target = d.memory.Bytes(to + done, false);
    if (!target.ok) return CUDA_ERROR_INVALID_VALUE;
    const uint64_t step = std::min(bytes - done, target.bytes);
    if (target.data != nullptr || !zero) {
      target = d.memory.Bytes(to + done, true);
      if (!target.ok) return CUDA_ERROR_OUT_OF_MEMORY;
      if (same) {
        memset(target.data, unit[0], step);
      } else {
        for (uint64_t i = 0; i < step; ++i) target.data[i] = unit[(done + i) % pattern_bytes];
      }
    }
    done += step;
  }
  return CUDA_SUCCESS;
}

}  // namespace simgpu
