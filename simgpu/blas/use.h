// The common part of the shims of cuBLAS, cuBLASLt and cuDNN. They compute nothing, and tell the checker which memory a
// call uses.
#pragma once

#include <library_types.h>

#include <cstddef>
#include <cstdint>

namespace simgpu::blas {

// Tells the checker that work on `stream` (a CUstream) uses `bytes` bytes at `memory`. Does nothing for null, for no
// bytes, or without a simulated driver. Thread-safe.
void Use(void* stream, const void* memory, uint64_t bytes, bool write);

// Counts a call that does work. `told`: Use reports all memory that it uses. That is impossible where addresses are in
// device memory. Thread-safe.
void CountCall(bool told);

// Returns the bytes of one element; 0: an unknown type.
size_t ElementBytes(cudaDataType type);

// Returns the bytes from the first to the last element of `count` matrices, `stride` elements apart. Each has `vectors`
// columns (or rows) of `length` elements, `leading` elements apart. 0 if there is no element.
uint64_t Extent(int64_t length, int64_t vectors, int64_t leading, int64_t count, int64_t stride, size_t element);

// ... of a vector of n elements, `step` apart (in reverse order if negative).
uint64_t VectorExtent(int64_t n, int64_t step, size_t element);

}  // namespace simgpu::blas
