// Entry points known by name only: CUDA_ERROR_NOT_SUPPORTED. They are counted and can be made to fail like others.
// Does not include cuda.h, because the parameters do not matter.
#include "simgpu/driver/entry.h"

namespace {
constexpr int kNotSupported = 801;
}  // namespace

#define SIMGPU_ENTRY(base, version, symbol, per_thread)
#define SIMGPU_STUB(base, version, symbol, per_thread)                 \
  extern "C" __attribute__((visibility("default"))) int symbol();      \
  extern "C" int symbol() {                                            \
    static ::simgpu::EntryPoint entry(#base);                          \
    if (const int early = entry.Enter(true); early != 0) return early; \
    return kNotSupported;                                              \
  }
#include "simgpu/driver/entry_points.inc"
