// The common part of the simulated runtime. It reaches the driver as the real runtime does: dlopen of libcuda.so.1, one
// dlsym for cuGetProcAddress_v2, and everything else through that, by base name and version. So wrappers of dlsym or
// cuGetProcAddress see the same look-ups.
#pragma once

#define __CUDA_API_VERSION_INTERNAL 1  // declares every variant (_ptsz, _ptds) under its exact name
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdint>

#include "simgpu/runtime/visibility.h"

#define CUDART_API extern "C" CUDART_VISIBLE cudaError_t CUDARTAPI

// An entry point and its per-thread variant. `body` uses `pt`: 0 legacy, 1 per thread.
//   CUDART_BOTH(cudaThing, cudaThing_ptsz, (int a, cudaStream_t stream), (a, stream), return …;)
#define CUDART_UNPACK(...) __VA_ARGS__
#define CUDART_BOTH(name, per_thread_name, parameters, arguments, ...)                             \
  static cudaError_t name##_Do([[maybe_unused]] int pt,                                            \
                               CUDART_UNPACK parameters){__VA_ARGS__} CUDART_API name parameters { \
    return name##_Do(0, CUDART_UNPACK arguments);                                                  \
  }                                                                                                \
  CUDART_API per_thread_name parameters { return name##_Do(1, CUDART_UNPACK arguments); }

// A call that passes its arguments to the driver.
#define CUDART_FORWARD_BOTH(name, per_thread_name, driver, parameters, arguments) \
  CUDART_BOTH(name, per_thread_name, parameters, arguments, {                     \
    CUDART_READY();                                                               \
    return Set(drv.driver[pt] arguments);                                         \
  })
// As above, for a call with one variant.
#define CUDART_FORWARD(name, driver, parameters, arguments) \
  CUDART_API name parameters {                              \
    CUDART_READY();                                         \
    return Set(drv.driver arguments);                       \
  }

namespace simgpu_runtime {

struct DriverTable {
#define CUDART_DRIVER(base, symbol, version) decltype(&::symbol) base = nullptr;
#define CUDART_DRIVER_BOTH(base, symbol, version, per_thread_version) decltype(&::symbol) base[2] = {};
#include "simgpu/runtime/driver_table.inc"
#undef CUDART_DRIVER
#undef CUDART_DRIVER_BOTH
  // simgpu/checker.h; null if the driver is not the simulated one.
  void (*given)(uint64_t, size_t, void*) = nullptr;
  void (*returned)(uint64_t, void*) = nullptr;
  void (*kept)(uint64_t) = nullptr;
  void (*reset)(int) = nullptr;
  int (*teller)(int) = nullptr;
  CUresult status = CUDA_ERROR_NOT_INITIALIZED;  // of loading and cuInit
};

const DriverTable& Driver();  // loads the driver at the first call

cudaError_t Set(cudaError_t error);  // remembers it for cudaGetLastError, if it is an error
cudaError_t Set(CUresult error);

// Makes the device's primary context current if the thread has none.
CUresult Ready();
int CurrentDevice();

// For `return Set(...)` bodies: returns early if there is no driver or context.
#define CUDART_READY()                                                                       \
  if (const CUresult cudart_early = ::simgpu_runtime::Ready(); cudart_early != CUDA_SUCCESS) \
    return ::simgpu_runtime::Set(cudart_early);                                              \
  [[maybe_unused]] const ::simgpu_runtime::DriverTable& drv = ::simgpu_runtime::Driver()

// While it lives, this thread is inside a runtime call that tells the checker itself.
class Telling {
 public:
  Telling() {
    if (Driver().teller != nullptr) Driver().teller(+1);
  }
  ~Telling() {
    if (Driver().teller != nullptr) Driver().teller(-1);
  }
  Telling(const Telling&) = delete;
  Telling& operator=(const Telling&) = delete;
  // `stream`: SIMGPU_NO_STREAM or the stream of the request.
  CUresult Given(CUresult result, CUdeviceptr address, size_t bytes, void* stream) const {
    if (result == CUDA_SUCCESS && Driver().given != nullptr) Driver().given(address, bytes, stream);
    return result;
  }
  void Returned(CUdeviceptr address, void* stream) const {
    if (Driver().returned != nullptr && address != 0) Driver().returned(address, stream);
  }
  // Handles the result of the reported release: if it was refused, the block stays the application's.
  CUresult Answered(CUresult result, CUdeviceptr address) const {
    if (result != CUDA_SUCCESS && Driver().kept != nullptr && address != 0) Driver().kept(address);
    return result;
  }
};

// Registered functions and variables (registration.cc).
CUresult FindKernel(const void* function, CUkernel* kernel);
CUresult FindVariable(const void* symbol, CUdeviceptr* address, size_t* bytes);

}  // namespace simgpu_runtime
