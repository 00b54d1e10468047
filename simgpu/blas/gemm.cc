// Products of matrices, under all their names.
#include "simgpu/blas/cublas.h"

namespace simgpu::blas {
namespace {

struct Matrix {
  const void* memory;
  cudaDataType type;
  int64_t leading, stride = 0;
};

// C ← alpha op(A) op(B) + beta C, `count` times. op(A) is m by k, op(B) is k by n.
cublasStatus_t Gemm(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int64_t m, int64_t n,
                    int64_t k, int64_t count, const Matrix& a, const Matrix& b, const Matrix& c, const void* alpha,
                    const void* beta, size_t scalar) {
  if (!Valid(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (m < 0 || n < 0 || k < 0 || count < 0 || alpha == nullptr || beta == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  if (a.leading < (op_a == CUBLAS_OP_N ? m : k) || b.leading < (op_b == CUBLAS_OP_N ? k : n) || c.leading < m) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const size_t bytes_a = ElementBytes(a.type), bytes_b = ElementBytes(b.type), bytes_c = ElementBytes(c.type);
  if (bytes_a == 0 || bytes_b == 0 || bytes_c == 0) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (m == 0 || n == 0 || count == 0) return CUBLAS_STATUS_SUCCESS;
  CountCall(true);
  ReadScalar(handle, alpha, scalar);
  ReadScalar(handle, beta, scalar);
  Read(handle, a.memory, MatrixBytes(op_a, m, k, a.leading, count, a.stride, bytes_a));
  Read(handle, b.memory, MatrixBytes(op_b, k, n, b.leading, count, b.stride, bytes_b));
  Write(handle, c.memory, Extent(m, n, c.leading, count, c.stride, bytes_c));
  Write(handle, handle->workspace, handle->workspace_bytes);
  return CUBLAS_STATUS_SUCCESS;
}

// Reports only the arrays of addresses: the matrices' addresses are in device memory.
cublasStatus_t GemmOfPointers(cublasHandle_t handle, const void* const a[], const void* const b[],
                              const void* const c[], int64_t count) {
  if (!Valid(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (count < 0) return CUBLAS_STATUS_INVALID_VALUE;
  CountCall(false);
  for (const void* names : {static_cast<const void*>(a), static_cast<const void*>(b), static_cast<const void*>(c)}) {
    Read(handle, names, static_cast<uint64_t>(count) * sizeof(void*));
  }
  Write(handle, handle->workspace, handle->workspace_bytes);
  return CUBLAS_STATUS_SUCCESS;
}

size_t ScalarBytes(cublasComputeType_t type) {
  return type == CUBLAS_COMPUTE_64F || type == CUBLAS_COMPUTE_64F_PEDANTIC ? 16 : 4;  // at least: it may be complex
}

}  // namespace
}  // namespace simgpu::blas

using simgpu::blas::Gemm;
using simgpu::blas::GemmOfPointers;

extern "C" {

// Each type's own functions, with 32-bit and 64-bit sizes.
#define SIMGPU_BLAS_GEMM(letter, T, type, suffix, Int)                                                                 \
  cublasStatus_t cublas##letter##gemm_v2##suffix(                                                                      \
      cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, Int m, Int n, Int k, const T* alpha,      \
      const T* A, Int lda, const T* B, Int ldb, const T* beta, T* C, Int ldc) {                                        \
    return Gemm(handle, op_a, op_b, m, n, k, 1, {A, type, lda}, {B, type, ldb}, {C, type, ldc}, alpha, beta,           \
                sizeof(T));                                                                                            \
  }                                                                                                                    \
  cublasStatus_t cublas##letter##gemmStridedBatched##suffix(                                                           \
      cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, Int m, Int n, Int k, const T* alpha,      \
      const T* A, Int lda, long long int stride_a, const T* B, Int ldb, long long int stride_b, const T* beta, T* C,   \
      Int ldc, long long int stride_c, Int count) {                                                                    \
    return Gemm(handle, op_a, op_b, m, n, k, count, {A, type, lda, stride_a}, {B, type, ldb, stride_b},                \
                {C, type, ldc, stride_c}, alpha, beta, sizeof(T));                                                     \
  }                                                                                                                    \
  cublasStatus_t cublas##letter##gemmBatched##suffix(cublasHandle_t handle, cublasOperation_t, cublasOperation_t, Int, \
                                                     Int, Int, const T*, const T* const A[], Int, const T* const B[],  \
                                                     Int, const T*, T* const C[], Int, Int count) {                    \
    return GemmOfPointers(handle, reinterpret_cast<const void* const*>(A), reinterpret_cast<const void* const*>(B),    \
                          reinterpret_cast<const void* const*>(C), count);                                             \
  }
#define SIMGPU_BLAS_GEMM_BOTH(letter, T, type) \
  SIMGPU_BLAS_GEMM(letter, T, type, , int)     \
  SIMGPU_BLAS_GEMM(letter, T, type, _64, int64_t)
SIMGPU_BLAS_GEMM_BOTH(S, float, CUDA_R_32F)
SIMGPU_BLAS_GEMM_BOTH(D, double, CUDA_R_64F)
SIMGPU_BLAS_GEMM_BOTH(C, cuComplex, CUDA_C_32F)
SIMGPU_BLAS_GEMM_BOTH(Z, cuDoubleComplex, CUDA_C_64F)

#define SIMGPU_BLAS_GEMM_EX(suffix, Int)                                                                              \
  cublasStatus_t cublasGemmEx##suffix(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, Int m,   \
                                      Int n, Int k, const void* alpha, const void* A, cudaDataType type_a, Int lda,   \
                                      const void* B, cudaDataType type_b, Int ldb, const void* beta, void* C,         \
                                      cudaDataType type_c, Int ldc, cublasComputeType_t compute, cublasGemmAlgo_t) {  \
    return Gemm(handle, op_a, op_b, m, n, k, 1, {A, type_a, lda}, {B, type_b, ldb}, {C, type_c, ldc}, alpha, beta,    \
                simgpu::blas::ScalarBytes(compute));                                                                  \
  }                                                                                                                   \
  cublasStatus_t cublasGemmStridedBatchedEx##suffix(                                                                  \
      cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, Int m, Int n, Int k, const void* alpha,  \
      const void* A, cudaDataType type_a, Int lda, long long int stride_a, const void* B, cudaDataType type_b,        \
      Int ldb, long long int stride_b, const void* beta, void* C, cudaDataType type_c, Int ldc,                       \
      long long int stride_c, Int count, cublasComputeType_t compute, cublasGemmAlgo_t) {                             \
    return Gemm(handle, op_a, op_b, m, n, k, count, {A, type_a, lda, stride_a}, {B, type_b, ldb, stride_b},           \
                {C, type_c, ldc, stride_c}, alpha, beta, simgpu::blas::ScalarBytes(compute));                         \
  }                                                                                                                   \
  cublasStatus_t cublasGemmBatchedEx##suffix(cublasHandle_t handle, cublasOperation_t, cublasOperation_t, Int, Int,   \
                                             Int, const void*, const void* const A[], cudaDataType, Int,              \
                                             const void* const B[], cudaDataType, Int, const void*, void* const C[],  \
                                             cudaDataType, Int, Int count, cublasComputeType_t, cublasGemmAlgo_t) {   \
    return GemmOfPointers(handle, A, B, reinterpret_cast<const void* const*>(C), count);                              \
  }                                                                                                                   \
  cublasStatus_t cublasSgemmEx##suffix(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, Int m,  \
                                       Int n, Int k, const float* alpha, const void* A, cudaDataType type_a, Int lda, \
                                       const void* B, cudaDataType type_b, Int ldb, const float* beta, void* C,       \
                                       cudaDataType type_c, Int ldc) {                                                \
    return Gemm(handle, op_a, op_b, m, n, k, 1, {A, type_a, lda}, {B, type_b, ldb}, {C, type_c, ldc}, alpha, beta,    \
                sizeof(float));                                                                                       \
  }
SIMGPU_BLAS_GEMM_EX(, int)
SIMGPU_BLAS_GEMM_EX(_64, int64_t)

}  // extern "C"
