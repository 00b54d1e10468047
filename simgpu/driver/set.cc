// Memsets.
#include <cstring>

#include "simgpu/driver/api.h"
#include "simgpu/driver/time_costs.h"
#include "simgpu/driver/work.h"

namespace simgpu {
namespace {

constexpr DefaultStream kLegacy = DefaultStream::kLegacy;
constexpr DefaultStream kPerThread = DefaultStream::kPerThread;

struct Fill {
  uint64_t to = 0, pitch = 0, width = 0, height = 1;  // bytes, rows
  unsigned pattern = 0, pattern_bytes = 1;
};

CUresult SetRows(Driver& d, Epoch op, const Fill& fill, uint64_t given_before) {
  TakeMemory(d, op.stream, fill.width * fill.height);
  for (uint64_t y = 0; y < fill.height; ++y) {
    const uint64_t to = fill.to + y * fill.pitch;
    d.checker.Use(op, to, fill.width, "a memset", given_before);
    const CUresult status = FillBytes(d, to, &fill.pattern, fill.pattern_bytes, fill.width);
    if (status != CUDA_SUCCESS) return status;
  }
  return CUDA_SUCCESS;
}

// A synchronous memset does not wait either (cuda_runtime_api.h, "API synchronization behavior"), unless the memory is
// the host's.
CUresult Set(Driver& d, const Fill& fill, CUstream handle, DefaultStream variant, bool wait) {
  SIMGPU_WORK_STREAM(stream, handle, variant);
  if (wait) {
    SIMGPU_UNSAFE();
  }
  if (fill.width == 0 || fill.height == 0) return CUDA_SUCCESS;
  if (fill.to == 0 || fill.to % fill.pattern_bytes != 0 || (fill.height > 1 && fill.pitch < fill.width)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (d.memory.Find(fill.to).kind == RegionKind::kForeign) return CUDA_ERROR_INVALID_VALUE;
  const CUresult status = Submit(
      d, stream, CU_GRAPH_NODE_TYPE_MEMSET,
      [fill](Driver& driver, Epoch op, uint64_t given_before) { return SetRows(driver, op, fill, given_before); });
  if (wait && d.memory.Find(fill.to).kind == RegionKind::kHost) d.order.HostSawStream(stream->order);
  return status;
}

}  // namespace

// The four variants of a one- and of a two-dimensional memset of one width.
#define SIMGPU_SET(bits, type)                                                                                       \
  static CUresult D##bits(CUdeviceptr to, type value, size_t count, DefaultStream variant) {                         \
    SIMGPU_ENTER(cuMemsetD##bits);                                                                                   \
    return Set(d, {to, 0, count * sizeof(type), 1, value, sizeof(type)}, nullptr, variant, true);                    \
  }                                                                                                                  \
  static CUresult D##bits##Async(CUdeviceptr to, type value, size_t count, CUstream stream, DefaultStream variant) { \
    SIMGPU_ENTER(cuMemsetD##bits##Async);                                                                            \
    return Set(d, {to, 0, count * sizeof(type), 1, value, sizeof(type)}, stream, variant, false);                    \
  }                                                                                                                  \
  static CUresult D2D##bits(CUdeviceptr to, size_t pitch, type value, size_t width, size_t height,                   \
                            DefaultStream variant) {                                                                 \
    SIMGPU_ENTER(cuMemsetD2D##bits);                                                                                 \
    return Set(d, {to, pitch, width * sizeof(type), height, value, sizeof(type)}, nullptr, variant, true);           \
  }                                                                                                                  \
  static CUresult D2D##bits##Async(CUdeviceptr to, size_t pitch, type value, size_t width, size_t height,            \
                                   CUstream stream, DefaultStream variant) {                                         \
    SIMGPU_ENTER(cuMemsetD2D##bits##Async);                                                                          \
    return Set(d, {to, pitch, width * sizeof(type), height, value, sizeof(type)}, stream, variant, false);           \
  }                                                                                                                  \
  SIMGPU_API cuMemsetD##bits##_v2(CUdeviceptr to, type value, size_t count) {                                        \
    return D##bits(to, value, count, kLegacy);                                                                       \
  }                                                                                                                  \
  SIMGPU_API cuMemsetD##bits##_v2_ptds(CUdeviceptr to, type value, size_t count) {                                   \
    return D##bits(to, value, count, kPerThread);                                                                    \
  }                                                                                                                  \
  SIMGPU_API cuMemsetD##bits##Async(CUdeviceptr to, type value, size_t count, CUstream stream) {                     \
    return D##bits##Async(to, value, count, stream, kLegacy);                                                        \
  }                                                                                                                  \
  SIMGPU_API cuMemsetD##bits##Async_ptsz(CUdeviceptr to, type value, size_t count, CUstream stream) {                \
    return D##bits##Async(to, value, count, stream, kPerThread);                                                     \
  }                                                                                                                  \
  SIMGPU_API cuMemsetD2D##bits##_v2(CUdeviceptr to, size_t pitch, type value, size_t width, size_t height) {         \
    return D2D##bits(to, pitch, value, width, height, kLegacy);                                                      \
  }                                                                                                                  \
  SIMGPU_API cuMemsetD2D##bits##_v2_ptds(CUdeviceptr to, size_t pitch, type value, size_t width, size_t height) {    \
    return D2D##bits(to, pitch, value, width, height, kPerThread);                                                   \
  }                                                                                                                  \
  SIMGPU_API cuMemsetD2D##bits##Async(CUdeviceptr to, size_t pitch, type value, size_t width, size_t height,         \
                                      CUstream stream) {                                                             \
    return D2D##bits##Async(to, pitch, value, width, height, stream, kLegacy);                                       \
  }                                                                                                                  \
  SIMGPU_API cuMemsetD2D##bits##Async_ptsz(CUdeviceptr to, size_t pitch, type value, size_t width, size_t height,    \
                                           CUstream stream) {                                                        \
    return D2D##bits##Async(to, pitch, value, width, height, stream, kPerThread);                                    \
  }

SIMGPU_SET(8, unsigned char)
SIMGPU_SET(16, unsigned short)
SIMGPU_SET(32, unsigned)

}  // namespace simgpu
