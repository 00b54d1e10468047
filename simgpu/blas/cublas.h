// A handle of the cuBLAS shim, and the common parts of its calls.
#pragma once

#include <cublas_v2.h>

#include "simgpu/blas/use.h"

// cublasHandle_t points to it. As with the real library, not for two threads at a time.
struct cublasContext {
  static constexpr uint32_t kMagic = 0x626c6173;
  uint32_t magic = kMagic;
  cudaStream_t stream = nullptr;
  void* workspace = nullptr;
  size_t workspace_bytes = 0;
  cublasPointerMode_t pointer_mode = CUBLAS_POINTER_MODE_HOST;
  cublasAtomicsMode_t atomics_mode = CUBLAS_ATOMICS_NOT_ALLOWED;
  cublasMath_t math_mode = CUBLAS_DEFAULT_MATH;
  int sm_count_target = 0;
};

namespace simgpu::blas {

inline bool Valid(cublasHandle_t handle) { return handle != nullptr && handle->magic == cublasContext::kMagic; }

inline void Read(cublasHandle_t handle, const void* memory, uint64_t bytes) {
  Use(handle->stream, memory, bytes, false);
}
inline void Write(cublasHandle_t handle, const void* memory, uint64_t bytes) {
  Use(handle->stream, memory, bytes, true);
}

// Reads alpha, beta, or a result of one value: in device memory only in that pointer mode.
inline void ReadScalar(cublasHandle_t handle, const void* value, size_t bytes) {
  if (handle->pointer_mode == CUBLAS_POINTER_MODE_DEVICE) Read(handle, value, bytes);
}

// Returns the bytes of X as stored, where op(X) is `rows` by `columns`.
inline uint64_t MatrixBytes(cublasOperation_t op, int64_t rows, int64_t columns, int64_t leading, int64_t count,
                            int64_t stride, size_t element) {
  return op == CUBLAS_OP_N ? Extent(rows, columns, leading, count, stride, element)
                           : Extent(columns, rows, leading, count, stride, element);
}

}  // namespace simgpu::blas
