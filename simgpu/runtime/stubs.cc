// Entry points of the runtime that are known by name only: cudaErrorNotSupported. This file sees no CUDA header: the
// parameters do not matter.
namespace {
constexpr int kNotSupported = 801;
}  // namespace

#define CUDART_STUB(name)                                       \
  extern "C" __attribute__((visibility("default"))) int name(); \
  extern "C" int name() { return kNotSupported; }
#include "simgpu/runtime/stubs.inc"
