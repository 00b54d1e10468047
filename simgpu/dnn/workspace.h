// The workspace of the simulated cuDNN, by one rule, so that a program's allocations are predictable.
//
// 1. A convolution has two engines (algorithms). The first lays out, for one image, the columns that its filters are
//    multiplied with. It needs (positions of the output image) x (elements of one filter) elements, rounded up to 256
//    bytes. The limit is SIMGPU_DNN_WORKSPACE bytes (default 32M; K, M, G, T are powers of 1024; 0: none).
// 2. The second engine needs no workspace.
// 3. No other operation of operation graphs needs any.
#pragma once

#include <cstdint>

namespace simgpu::dnn {

// Returns SIMGPU_DNN_WORKSPACE in bytes, read at the first call. A malformed value ends the process. Thread-safe.
uint64_t WorkspaceBound();

// Rounds up to 256 bytes, cudaMalloc's alignment.
inline uint64_t Rounded(uint64_t bytes) { return (bytes + 255) / 256 * 256; }

// Returns the bytes by the rule above. `output` is the tensor on the output side of the convolution (y, or dy), N and C
// first. `filter` has the number of filters first. `count` dimensions each.
uint64_t ConvolutionWorkspace(int64_t count, const int64_t output[], const int64_t filter[], uint64_t element_bits);

}  // namespace simgpu::dnn
