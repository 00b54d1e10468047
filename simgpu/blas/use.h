// What the shims of cuBLAS, cuBLASLt and cuDNN share: they compute nothing, and tell the checker which memory a call
// uses.
#pragma once

#include <library_types.h>

#include <cstddef>
#include <cstdint>

namespace simgpu::blas {

// `bytes` bytes at `memory` are used by work on `stream` (a CUstream). Nothing happens for null, for no bytes, or where
// no simulated driver is loaded. Thread-safe.
void Use(void* stream, const void* memory, uint64_t bytes, bool write);

// A call that does work is counted. `told`: all memory that it uses is told by Use; not so where addresses are in
// device memory. Thread-safe.
void CountCall(bool told);

// Bytes of one element; 0: not a type this knows.
size_t ElementBytes(cudaDataType type);

// Bytes from the first to the last element of `count` matrices, `stride` elements apart: each of `vectors` columns (or
// rows) of `length` elements, `leading` elements apart. 0 if there is no element.
uint64_t Extent(int64_t length, int64_t vectors, int64_t leading, int64_t count, int64_t stride, size_t element);

// ... of a vector of n elements, `step` apart (the other way round if negative).
uint64_t VectorExtent(int64_t n, int64_t step, size_t element);

}  // namespace simgpu::blas
