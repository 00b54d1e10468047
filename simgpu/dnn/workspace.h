// How much workspace the simulated cuDNN asks for: one rule, so that a program's allocations can be foretold.
//
// A convolution has two engines (algorithms). The first lays out, for one image, the columns that its filters are
// multiplied with: (positions of the output image) x (elements of one filter) elements, rounded up to 256 bytes, and at most
// SIMGPU_DNN_WORKSPACE bytes (default 32M; K, M, G, T are powers of 1024; 0: none). The second needs no workspace. Nothing
// else that is described by operation graphs needs any.
#pragma once

#include <cstdint>

namespace simgpu::dnn {

// SIMGPU_DNN_WORKSPACE in bytes, read at the first call; a malformed one ends the process. Thread-safe.
uint64_t WorkspaceBound();

// Rounds up to 256 bytes, the alignment of what cudaMalloc gives.
inline uint64_t Rounded(uint64_t bytes) { return (bytes + 255) / 256 * 256; }

// By the rule above: `output` is the tensor on the far side of the convolution (y, or dy), N and C first; `filter` has
// the number of filters first. `count` dimensions each. Bytes.
uint64_t ConvolutionWorkspace(int64_t count, const int64_t output[], const int64_t filter[], uint64_t element_bits);

}  // namespace simgpu::dnn
