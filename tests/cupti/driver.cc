// The driver functions in which the stand-in works: each reports itself and calls the next one.
#include <dlfcn.h>

#include "tests/cupti/standin.h"

namespace {

using namespace cupti_standin;

void* Find(const char* name) {
  if (void* next = dlsym(RTLD_NEXT, name)) return next;
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  return driver != nullptr ? dlsym(driver, name) : nullptr;
}

// The next definition; found once.
#define NEXT(function)                                                               \
  ([] {                                                                              \
    static const auto next = reinterpret_cast<decltype(&function)>(Find(#function)); \
    return next;                                                                     \
  }())

bool Captured(CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const auto ask = NEXT(cuStreamIsCapturing);
  if (stream == nullptr || stream == CU_STREAM_LEGACY || ask == nullptr) return false;
  return ask(stream, &status) == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

const char* NameOf(CUfunction function) {
  const char* name = nullptr;
  const auto ask = NEXT(cuFuncGetName);
  return ask != nullptr && ask(&name, function) == CUDA_SUCCESS ? name : "a kernel without a name";
}

}  // namespace

#define STANDIN_DRIVER extern "C" __attribute__((visibility("default"))) CUresult
#define CALL(symbol) CUPTI_DRIVER_TRACE_CBID_##symbol

#define LAUNCH(symbol)                                                                                              \
  STANDIN_DRIVER symbol(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, \
                        unsigned shared, CUstream stream, void** arguments, void** extra) {                         \
    const symbol##_params parameters = {f, gx, gy, gz, bx, by, bz, shared, stream, arguments, extra};               \
    const Submission submission(CALL(symbol), #symbol, &parameters, Work::kKernel, NameOf(f), Captured(stream));    \
    return NEXT(symbol)(f, gx, gy, gz, bx, by, bz, shared, stream, arguments, extra);                               \
  }
LAUNCH(cuLaunchKernel)
LAUNCH(cuLaunchKernel_ptsz)

#define LAUNCH_EX(symbol)                                                                             \
  STANDIN_DRIVER symbol(const CUlaunchConfig* config, CUfunction f, void** arguments, void** extra) { \
    const symbol##_params parameters = {config, f, arguments, extra};                                 \
    const Submission submission(CALL(symbol), #symbol, &parameters, Work::kKernel, NameOf(f),         \
                                Captured(config->hStream));                                           \
    return NEXT(symbol)(config, f, arguments, extra);                                                 \
  }
LAUNCH_EX(cuLaunchKernelEx)
LAUNCH_EX(cuLaunchKernelEx_ptsz)

#define ASYNC(symbol, work, To, From)                                                                 \
  STANDIN_DRIVER symbol(To to, From from, size_t bytes, CUstream stream) {                            \
    const symbol##_params parameters = {to, from, bytes, stream};                                     \
    const Submission submission(CALL(symbol), #symbol, &parameters, work, nullptr, Captured(stream)); \
    return NEXT(symbol)(to, from, bytes, stream);                                                     \
  }
ASYNC(cuMemcpyHtoDAsync_v2, Work::kCopy, CUdeviceptr, const void*)
ASYNC(cuMemcpyDtoHAsync_v2, Work::kCopy, void*, CUdeviceptr)
ASYNC(cuMemcpyDtoDAsync_v2, Work::kCopy, CUdeviceptr, CUdeviceptr)
ASYNC(cuMemcpyAsync, Work::kCopy, CUdeviceptr, CUdeviceptr)
ASYNC(cuMemsetD8Async, Work::kSet, CUdeviceptr, unsigned char)
ASYNC(cuMemsetD32Async, Work::kSet, CUdeviceptr, unsigned)

#define SYNC(symbol, work, To, From)                                                       \
  STANDIN_DRIVER symbol(To to, From from, size_t bytes) {                                  \
    const symbol##_params parameters = {to, from, bytes};                                  \
    const Submission submission(CALL(symbol), #symbol, &parameters, work, nullptr, false); \
    return NEXT(symbol)(to, from, bytes);                                                  \
  }
SYNC(cuMemcpyHtoD_v2, Work::kCopy, CUdeviceptr, const void*)
SYNC(cuMemcpyDtoH_v2, Work::kCopy, void*, CUdeviceptr)
SYNC(cuMemcpyDtoD_v2, Work::kCopy, CUdeviceptr, CUdeviceptr)
SYNC(cuMemsetD8_v2, Work::kSet, CUdeviceptr, unsigned char)
SYNC(cuMemsetD32_v2, Work::kSet, CUdeviceptr, unsigned)

STANDIN_DRIVER cuGraphLaunch(CUgraphExec graph, CUstream stream) {
  const cuGraphLaunch_params parameters = {graph, stream};
  const Submission submission(CALL(cuGraphLaunch), "cuGraphLaunch", &parameters, Work::kGraph, nullptr,
                              Captured(stream));
  return NEXT(cuGraphLaunch)(graph, stream);
}

STANDIN_DRIVER cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
  const CUresult result = NEXT(cuMemAlloc_v2)(address, bytes);
  if (result == CUDA_SUCCESS) NoteMemory(*address, bytes, false);
  return result;
}

STANDIN_DRIVER cuMemFree_v2(CUdeviceptr address) {
  const CUresult result = NEXT(cuMemFree_v2)(address);
  if (result == CUDA_SUCCESS) NoteMemory(address, 0, true);
  return result;
}
