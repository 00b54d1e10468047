// An allocator to preload that claims to be hotpack and is wrong on purpose, which a probe must notice.
// GPU_FAULT=overlap returns memory in use; misaligned: odd places; lost: forgets where a block was and refuses its
// release.
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "runtime/include/hotpack.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr size_t kArena = size_t{512} << 20;
char* arena = nullptr;
size_t next = 0;

bool Fault(const char* name) {
  const char* fault = getenv("GPU_FAULT");
  return fault != nullptr && strcmp(fault, name) == 0;
}

template <typename Function>
Function Real(Function, const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

EXPORT cudaError_t cudaMalloc(void** result, size_t bytes) {
  if (arena == nullptr) {
    void* memory = nullptr;
    const cudaError_t error = Real(&cudaMalloc, "cudaMalloc")(&memory, kArena);
    if (error != cudaSuccess) return error;
    arena = static_cast<char*>(memory);
  }
  const size_t rounded = (bytes + 511) / 512 * 512;
  if (rounded > kArena) return cudaErrorMemoryAllocation;
  // A ring that ignores live blocks; with `overlap` a small one. Otherwise it is long enough for a quick run's blocks.
  const size_t end = Fault("overlap") ? size_t{8} << 20 : kArena;
  if (next + rounded > end) next = 0;
  *result = arena + next + (Fault("misaligned") ? 256 : 0);
  next += rounded;
  return cudaSuccess;
}

EXPORT cudaError_t cudaFree(void* pointer) {
  const char* p = static_cast<char*>(pointer);
  if (arena != nullptr && p >= arena && p < arena + kArena) return Fault("lost") ? cudaErrorInvalidValue : cudaSuccess;
  return Real(&cudaFree, "cudaFree")(pointer);
}

EXPORT int hotpack_get_stats(hotpack_stats* stats, size_t size) {
  memset(stats, 0, size);
  return 0;
}
