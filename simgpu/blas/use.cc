#include "simgpu/blas/use.h"

#include <dlfcn.h>

#include <cstdlib>

namespace simgpu::blas {
namespace {

using UseFunction = void (*)(void*, uint64_t, size_t, int);
using CountFunction = void (*)(int);

// The driver is loaded before any device memory exists.
void* FindInDriver(const char* name) {
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  return driver != nullptr ? dlsym(driver, name) : nullptr;
}

}  // namespace

void Use(void* stream, const void* memory, uint64_t bytes, bool write) {
  static const auto use = reinterpret_cast<UseFunction>(FindInDriver("simgpuUse"));
  if (use == nullptr || memory == nullptr || bytes == 0) return;
  use(stream, reinterpret_cast<uint64_t>(memory), bytes, write ? 1 : 0);
}

void CountCall(bool told) {
  static const auto count = reinterpret_cast<CountFunction>(FindInDriver("simgpuLibraryCall"));
  if (count != nullptr) count(told ? 1 : 0);
}

size_t ElementBytes(cudaDataType type) {
  switch (type) {
    case CUDA_R_8I:
    case CUDA_R_8U:
    case CUDA_R_8F_E4M3:
    case CUDA_R_8F_E5M2:
      return 1;
    case CUDA_R_16F:
    case CUDA_R_16BF:
    case CUDA_R_16I:
    case CUDA_C_8I:
      return 2;
    case CUDA_R_32F:
    case CUDA_R_32I:
    case CUDA_C_16F:
    case CUDA_C_16BF:
      return 4;
    case CUDA_R_64F:
    case CUDA_R_64I:
    case CUDA_C_32F:
    case CUDA_C_32I:
      return 8;
    case CUDA_C_64F:
      return 16;
    default:
      return 0;
  }
}

uint64_t Extent(int64_t length, int64_t vectors, int64_t leading, int64_t count, int64_t stride, size_t element) {
  if (length <= 0 || vectors <= 0 || count <= 0) return 0;
  const int64_t last = (count - 1) * stride + (vectors - 1) * leading + length;  // one behind the last
  return last > 0 ? static_cast<uint64_t>(last) * element : 0;
}

uint64_t VectorExtent(int64_t n, int64_t step, size_t element) {
  return n <= 0 ? 0 : (static_cast<uint64_t>(n - 1) * static_cast<uint64_t>(std::abs(step)) + 1) * element;
}

}  // namespace simgpu::blas
