// Vectors, products of a matrix and a vector, triangular systems.
#include <cstring>

#include "simgpu/blas/cublas.h"

namespace simgpu::blas {
namespace {

cublasStatus_t Gemv(cublasHandle_t handle, cublasOperation_t op, int64_t m, int64_t n, const void* alpha, const void* a,
                    int64_t lda, const void* x, int64_t step_x, const void* beta, void* y, int64_t step_y,
                    size_t element) {
  if (!Valid(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (m < 0 || n < 0 || step_x == 0 || step_y == 0 || lda < m) return CUBLAS_STATUS_INVALID_VALUE;
  if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
  const bool plain = op == CUBLAS_OP_N;
  CountCall(true);
  ReadScalar(handle, alpha, element);
  ReadScalar(handle, beta, element);
  Read(handle, a, Extent(m, n, lda, 1, 0, element));
  Read(handle, x, VectorExtent(plain ? n : m, step_x, element));
  Write(handle, y, VectorExtent(plain ? m : n, step_y, element));
  return CUBLAS_STATUS_SUCCESS;
}

// Returns one value: 0 if the host asked for it.
void Answer(cublasHandle_t handle, void* result, size_t bytes) {
  if (handle->pointer_mode == CUBLAS_POINTER_MODE_DEVICE) {
    Write(handle, result, bytes);
  } else if (result != nullptr) {
    memset(result, 0, bytes);
  }
}

cublasStatus_t Dot(cublasHandle_t handle, int64_t n, const void* x, int64_t step_x, size_t bytes_x, const void* y,
                   int64_t step_y, size_t bytes_y, void* result, size_t bytes) {
  if (!Valid(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (bytes_x == 0 || bytes_y == 0 || bytes == 0) return CUBLAS_STATUS_NOT_SUPPORTED;
  CountCall(true);
  Read(handle, x, VectorExtent(n, step_x, bytes_x));
  Read(handle, y, VectorExtent(n, step_y, bytes_y));
  Answer(handle, result, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

// y ← a function of x and y
cublasStatus_t Update(cublasHandle_t handle, int64_t n, const void* alpha, const void* x, int64_t step_x, void* y,
                      int64_t step_y, size_t element) {
  if (!Valid(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  CountCall(true);
  if (alpha != nullptr) ReadScalar(handle, alpha, element);
  if (x != nullptr) Read(handle, x, VectorExtent(n, step_x, element));
  Write(handle, y, VectorExtent(n, step_y, element));
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t Trsm(cublasHandle_t handle, cublasSideMode_t side, int64_t m, int64_t n, const void* alpha,
                    const void* a, int64_t lda, void* b, int64_t ldb, size_t element) {
  if (!Valid(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  const int64_t order = side == CUBLAS_SIDE_LEFT ? m : n;
  if (m < 0 || n < 0 || lda < order || ldb < m) return CUBLAS_STATUS_INVALID_VALUE;
  if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
  CountCall(true);
  ReadScalar(handle, alpha, element);
  Read(handle, a, Extent(order, order, lda, 1, 0, element));
  Write(handle, b, Extent(m, n, ldb, 1, 0, element));
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace
}  // namespace simgpu::blas

using simgpu::blas::Dot;
using simgpu::blas::ElementBytes;
using simgpu::blas::Gemv;
using simgpu::blas::Trsm;
using simgpu::blas::Update;

extern "C" {

#define SIMGPU_BLAS_VECTOR(letter, T, suffix, Int)                                                                     \
  cublasStatus_t cublas##letter##gemv_v2##suffix(cublasHandle_t handle, cublasOperation_t op, Int m, Int n,            \
                                                 const T* alpha, const T* A, Int lda, const T* x, Int incx,            \
                                                 const T* beta, T* y, Int incy) {                                      \
    return Gemv(handle, op, m, n, alpha, A, lda, x, incx, beta, y, incy, sizeof(T));                                   \
  }                                                                                                                    \
  cublasStatus_t cublas##letter##axpy_v2##suffix(cublasHandle_t handle, Int n, const T* alpha, const T* x, Int incx,   \
                                                 T* y, Int incy) {                                                     \
    return Update(handle, n, alpha, x, incx, y, incy, sizeof(T));                                                      \
  }                                                                                                                    \
  cublasStatus_t cublas##letter##copy_v2##suffix(cublasHandle_t handle, Int n, const T* x, Int incx, T* y, Int incy) { \
    return Update(handle, n, nullptr, x, incx, y, incy, sizeof(T));                                                    \
  }                                                                                                                    \
  cublasStatus_t cublas##letter##scal_v2##suffix(cublasHandle_t handle, Int n, const T* alpha, T* x, Int incx) {       \
    return Update(handle, n, alpha, nullptr, 1, x, incx, sizeof(T));                                                   \
  }                                                                                                                    \
  cublasStatus_t cublas##letter##trsm_v2##suffix(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t,       \
                                                 cublasOperation_t, cublasDiagType_t, Int m, Int n, const T* alpha,    \
                                                 const T* A, Int lda, T* B, Int ldb) {                                 \
    return Trsm(handle, side, m, n, alpha, A, lda, B, ldb, sizeof(T));                                                 \
  }
#define SIMGPU_BLAS_DOT(name, T, suffix, Int)                                                                        \
  cublasStatus_t cublas##name##_v2##suffix(cublasHandle_t handle, Int n, const T* x, Int incx, const T* y, Int incy, \
                                           T* result) {                                                              \
    return Dot(handle, n, x, incx, sizeof(T), y, incy, sizeof(T), result, sizeof(T));                                \
  }
#define SIMGPU_BLAS_DOT_EX(name, suffix, Int)                                                                        \
  cublasStatus_t cublas##name##suffix(cublasHandle_t handle, Int n, const void* x, cudaDataType type_x, Int incx,    \
                                      const void* y, cudaDataType type_y, Int incy, void* result, cudaDataType type, \
                                      cudaDataType) {                                                                \
    return Dot(handle, n, x, incx, ElementBytes(type_x), y, incy, ElementBytes(type_y), result, ElementBytes(type)); \
  }
#define SIMGPU_BLAS_BOTH(macro, ...) macro(__VA_ARGS__, , int) macro(__VA_ARGS__, _64, int64_t)
SIMGPU_BLAS_BOTH(SIMGPU_BLAS_VECTOR, S, float)
SIMGPU_BLAS_BOTH(SIMGPU_BLAS_VECTOR, D, double)
SIMGPU_BLAS_BOTH(SIMGPU_BLAS_VECTOR, C, cuComplex)
SIMGPU_BLAS_BOTH(SIMGPU_BLAS_VECTOR, Z, cuDoubleComplex)
SIMGPU_BLAS_BOTH(SIMGPU_BLAS_DOT, Sdot, float)
SIMGPU_BLAS_BOTH(SIMGPU_BLAS_DOT, Ddot, double)
SIMGPU_BLAS_BOTH(SIMGPU_BLAS_DOT, Cdotu, cuComplex)
SIMGPU_BLAS_BOTH(SIMGPU_BLAS_DOT, Cdotc, cuComplex)
SIMGPU_BLAS_BOTH(SIMGPU_BLAS_DOT, Zdotu, cuDoubleComplex)
SIMGPU_BLAS_BOTH(SIMGPU_BLAS_DOT, Zdotc, cuDoubleComplex)
SIMGPU_BLAS_BOTH(SIMGPU_BLAS_DOT_EX, DotEx)
SIMGPU_BLAS_BOTH(SIMGPU_BLAS_DOT_EX, DotcEx)

}  // extern "C"
