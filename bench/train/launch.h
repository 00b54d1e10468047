// Runs a function once for each index, in one of three ways, so that one kernel source serves all programs and the
// tests of machines without a GPU:
//   nvcc                                 a kernel, launched through cudart
//   host compiler, HOTPACK_TRAIN_DRIVER  the same kernel out of the program's module, launched through the driver
//   host compiler                        a loop
#pragma once

#include <cstdint>

#include "bench/train/use_log.h"

#if defined(__CUDACC__)
#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

#include "bench/train/launch_stream.h"
#define HOTPACK_KERNEL_FUNCTION __host__ __device__ inline
#else
#define HOTPACK_KERNEL_FUNCTION inline
#endif
#if !defined(__CUDACC__) && defined(HOTPACK_TRAIN_DRIVER)
#include "bench/train/driver_kernels.h"
#endif

namespace hotpack::train {

inline unsigned BlocksFor(int64_t count, int threads) { return static_cast<unsigned>((count + threads - 1) / threads); }
inline constexpr int kThreadsOfBlock = 256;

#if defined(__CUDACC__)

template <auto Function, typename... Arguments>
__global__ void ForEachIndex(int64_t count, Arguments... arguments) {
  const int64_t index = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index < count) Function(index, arguments...);
}

template <auto Function, typename... Arguments>
void Launch(int64_t count, Arguments... arguments) {
  ForEachIndex<Function>
      <<<BlocksFor(count, kThreadsOfBlock), kThreadsOfBlock, 0, static_cast<cudaStream_t>(launch_stream)>>>(
          count, arguments...);
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) throw std::runtime_error(std::string("kernel launch: ") + cudaGetErrorString(error));
  if (use_log != nullptr) use_log->Note(__PRETTY_FUNCTION__, {AsPointer(arguments)...});
}

#elif defined(HOTPACK_TRAIN_DRIVER)

template <auto Function, typename... Arguments>
void Launch(int64_t count, Arguments... arguments) {
  static const DriverKernel kernel = FindDriverKernel(__PRETTY_FUNCTION__);
  void* addresses[] = {&count, &arguments...};
  LaunchDriverKernel(kernel, BlocksFor(count, kThreadsOfBlock), kThreadsOfBlock, addresses);
  if (use_log != nullptr) use_log->Note(__PRETTY_FUNCTION__, {AsPointer(arguments)...});
}

#else

template <auto Function, typename... Arguments>
void Launch(int64_t count, Arguments... arguments) {
  for (int64_t index = 0; index < count; ++index) Function(index, arguments...);
}

#endif

}  // namespace hotpack::train
