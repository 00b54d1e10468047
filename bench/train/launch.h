// Runs a function once for each index: as a kernel where nvcc compiles this, as a loop where the host compiler does.
// The same kernel source therefore serves the program and its test on a machine without a GPU.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>
#define HOTPACK_KERNEL_FUNCTION __host__ __device__ inline
#else
#define HOTPACK_KERNEL_FUNCTION inline
#endif

namespace hotpack::train {

#ifdef __CUDACC__

template <auto Function, typename... Arguments>
__global__ void ForEachIndex(int64_t count, Arguments... arguments) {
  const int64_t index = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index < count) Function(index, arguments...);
}

template <auto Function, typename... Arguments>
void Launch(int64_t count, Arguments... arguments) {
  constexpr int kThreads = 256;
  const auto blocks = static_cast<unsigned>((count + kThreads - 1) / kThreads);
  ForEachIndex<Function><<<blocks, kThreads>>>(count, arguments...);
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) throw std::runtime_error(std::string("kernel launch: ") + cudaGetErrorString(error));
}

#else

template <auto Function, typename... Arguments>
void Launch(int64_t count, Arguments... arguments) {
  for (int64_t index = 0; index < count; ++index) Function(index, arguments...);
}

#endif

}  // namespace hotpack::train
