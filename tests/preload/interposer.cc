// Another preload: counts cuMemAlloc_v2 and cuLaunchKernel and passes them through, to RTLD_NEXT or (INTERPOSER=handle)
// to the functions that dlsym finds in the driver library. INTERPOSER=versioned: the latter, through its own dlsym that
// asks for the next one by version, as many interposers do.
#include <cuda.h>
#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {
std::atomic<int> calls{0}, launches{0};
struct Report {
  ~Report() {
    char line[64];
    const int length =
        snprintf(line, sizeof(line), "interposer: %d calls, %d launches\n", calls.load(), launches.load());
    if (write(2, line, static_cast<size_t>(length)) < 0) _exit(1);
  }
} report;

bool How(const char* how) {
  const char* value = getenv("INTERPOSER");
  return value != nullptr && strcmp(value, how) == 0;
}

template <typename Function>
Function Next(const char* name) {
  if (How("versioned")) {
    const auto next = reinterpret_cast<void* (*)(void*, const char*)>(dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5"));
    return reinterpret_cast<Function>(next(dlopen("libcuda.so.1", RTLD_LAZY), name));
  }
  const bool handle = How("handle");
  return reinterpret_cast<Function>(dlsym(handle ? dlopen("libcuda.so.1", RTLD_LAZY) : RTLD_NEXT, name));
}
}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT CUresult Alloc(CUdeviceptr*, size_t) __asm__("cuMemAlloc_v2");
EXPORT CUresult Alloc(CUdeviceptr* address, size_t bytes) {
  static const auto next = Next<CUresult (*)(CUdeviceptr*, size_t)>("cuMemAlloc_v2");
  ++calls;
  return next(address, bytes);
}

using LaunchFunction = CUresult (*)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                    CUstream, void**, void**);
EXPORT CUresult Launch(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                       unsigned shared, CUstream stream, void** parameters, void** extra) __asm__("cuLaunchKernel");
EXPORT CUresult Launch(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                       unsigned shared, CUstream stream, void** parameters, void** extra) {
  static const auto next = Next<LaunchFunction>("cuLaunchKernel");
  ++launches;
  return next(f, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra);
}
