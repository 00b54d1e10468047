// Entry points of the runtime known by name only: cudaErrorNotSupported. Includes no CUDA header, because the
// parameters do not matter.
#include "simgpu/runtime/visibility.h"

namespace {
constexpr int kNotSupported = 801;
}  // namespace

#define CUDART_STUB(name)               \
  extern "C" CUDART_VISIBLE int name(); \
  extern "C" int name() { return kNotSupported; }
#include "simgpu/runtime/stubs.inc"
