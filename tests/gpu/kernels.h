// The kernels of the probes. Each runs as one block of threads on one multiprocessor, ends by itself after the given
// time (at most about twice that, by two clocks), and uses global memory only.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace hotpack::gpu {

// The launches, as nvcc compiles `<<<..., stream>>>` in one translation unit: stream 0 is the default stream that this
// unit was compiled for. Each returns cudaGetLastError() after its launch.
struct Kernels {
  // Runs for `ns` nanoseconds.
  cudaError_t (*spin)(uint64_t ns, cudaStream_t stream);

  // Writes `value` to words [0, words) again and again, until `ns` nanoseconds are over; at least once.
  cudaError_t (*keep_writing)(uint32_t* p, size_t words, uint32_t value, uint64_t ns, cudaStream_t stream);

  // Reads words [0, words) again and again, until `ns` nanoseconds are over, at least once; adds to *wrong the number
  // of times that another value than `value` was read.
  cudaError_t (*watch)(const uint32_t* p, size_t words, uint32_t value, uint64_t ns, unsigned long long* wrong,
                       cudaStream_t stream);
};

const Kernels& LegacyKernels();
const Kernels& PerThreadKernels();  // compiled with --default-stream per-thread

}  // namespace hotpack::gpu
