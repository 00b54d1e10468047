// The cuBLAS shims: a call uses the same elements as the real function.
#include <cublasLt.h>
#include <cublas_v2.h>

#include <cstring>

#include "tests/simgpu/checker_cases.h"

namespace simgpu_test {
namespace {

#define SUCCEED(call)                                                                                 \
  do {                                                                                                \
    if (const cublasStatus_t status = (call); status != CUBLAS_STATUS_SUCCESS) {                      \
      fprintf(stderr, "%s:%d: %s gave %s\n", __FILE__, __LINE__, #call, cublasGetStatusName(status)); \
      exit(4);                                                                                        \
    }                                                                                                 \
  } while (false)
#define EXPECT(condition)                                                      \
  do {                                                                         \
    if (!(condition)) {                                                        \
      fprintf(stderr, "%s:%d: %s is false\n", __FILE__, __LINE__, #condition); \
      exit(5);                                                                 \
    }                                                                          \
  } while (false)

cublasHandle_t NewHandle(CUstream stream) {
  cublasHandle_t handle = nullptr;
  SUCCEED(cublasCreate(&handle));
  SUCCEED(cublasSetStream(handle, stream));
  return handle;
}

float* Floats(uint64_t offset) { return reinterpret_cast<float*>(arena + offset); }
const float kOne = 1, kNone = 0;

// A is 10 by 30 with columns 12 apart, B 30 by 20, C 10 by 20: blocks of just so many bytes, 2048 apart.
constexpr size_t kBytesA = (29 * 12 + 10) * 4, kBytesB = 30 * 20 * 4, kBytesC = 10 * 20 * 4;
constexpr uint64_t kA = 0, kB = 8192, kC = 16384;
void GiveMatrices(size_t a = kBytesA, size_t b = kBytesB, size_t c = kBytesC) {
  Give(arena + kA, a);
  Give(arena + kB, b);
  Give(arena + kC, c);
}
void Product(cublasHandle_t handle) {
  SUCCEED(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 10, 20, 30, &kOne, Floats(kA), 12, Floats(kB), 30, &kNone,
                      Floats(kC), 10));
}

CASE(GemmClean) {
  GiveMatrices();
  Product(NewHandle(s1));
}
CASE(GemmBeyondA) {
  GiveMatrices(kBytesA - 4);
  Product(NewHandle(s1));
}
CASE(GemmBeyondB) {
  GiveMatrices(kBytesA, kBytesB - 4);
  Product(NewHandle(s1));
}
CASE(GemmBeyondC) {
  GiveMatrices(kBytesA, kBytesB, kBytesC - 4);
  Product(NewHandle(s1));
}
CASE(GemmTransposed) {  // A stored as 30 by 10: 10 columns of 30, 32 apart
  GiveMatrices((9 * 32 + 30) * 4, (29 * 20 + 20) * 4);
  SUCCEED(cublasSgemm(NewHandle(s1), CUBLAS_OP_T, CUBLAS_OP_T, 10, 20, 30, &kOne, Floats(kA), 32, Floats(kB), 20,
                      &kNone, Floats(kC), 10));
}
CASE(GemmOnAnotherStream) {
  UsedOnce();
  GiveMatrices();
  Product(NewHandle(s2));
}
CASE(GemmAfterAnEvent) {
  UsedOnce();
  GiveMatrices();
  EventEdge(s1, s2);
  Product(NewHandle(s2));
}
CASE(GemmOfNothing) {
  cublasHandle_t handle = NewHandle(s1);
  SUCCEED(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 0, 20, 30, &kOne, Floats(kA), 12, Floats(kB), 30, &kNone,
                      Floats(kC), 10));
}
CASE(GemmStrided) {  // five, the last of each ends the block
  Give(arena + kA, (4 * 100 + 100) * 2);
  Give(arena + kB, 100 * 2);
  Give(arena + kC, (4 * 150 + 100) * 2);
  SUCCEED(cublasGemmStridedBatchedEx(NewHandle(s1), CUBLAS_OP_N, CUBLAS_OP_N, 10, 10, 10, &kOne, Floats(kA),
                                     CUDA_R_16BF, 10, 100, Floats(kB), CUDA_R_16BF, 10, 0, &kNone, Floats(kC),
                                     CUDA_R_16BF, 10, 150, 5, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
}
CASE(GemmStridedBeyond) {
  Give(arena + kA, (4 * 100 + 100) * 2);
  Give(arena + kB, 100 * 2);
  Give(arena + kC, (4 * 150 + 100) * 2 - 2);
  SUCCEED(cublasGemmStridedBatchedEx(NewHandle(s1), CUBLAS_OP_N, CUBLAS_OP_N, 10, 10, 10, &kOne, Floats(kA),
                                     CUDA_R_16BF, 10, 100, Floats(kB), CUDA_R_16BF, 10, 0, &kNone, Floats(kC),
                                     CUDA_R_16BF, 10, 150, 5, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
}
CASE(WorkspaceIsUsed) {
  GiveMatrices();
  cublasHandle_t handle = NewHandle(s1);
  Give(arena + 32768, 4096);
  SUCCEED(cublasSetWorkspace(handle, Floats(32768), 4096));
  Return(arena + 32768);
  Product(handle);
}
CASE(WorkspaceGoesWithTheStream) {
  GiveMatrices();
  cublasHandle_t handle = NewHandle(s1);
  SUCCEED(cublasSetWorkspace(handle, Floats(32768), 4096));
  SUCCEED(cublasSetStream(handle, s1));
  Product(handle);
}
CASE(ScalarsOnTheDevice) {
  GiveMatrices();
  Give(arena + 32768, 4);
  cublasHandle_t handle = NewHandle(s1);
  SUCCEED(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE));
  SUCCEED(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 10, 20, 30, Floats(32768), Floats(kA), 12, Floats(kB), 30,
                      Floats(40960), Floats(kC), 10));
}
CASE(Vectors) {
  Give(arena, 19 * 3 * 4 + 4);  // 20 elements, 3 apart
  Give(arena + 8192, 40 * 4);
  cublasHandle_t handle = NewHandle(s1);
  float result = 7;
  SUCCEED(cublasSdot(handle, 20, Floats(0), 3, Floats(8192), 2, &result));
  EXPECT(result == 0);
  SUCCEED(cublasSaxpy(handle, 20, &kOne, Floats(0), -3, Floats(8192), 2));
}
CASE(VectorBeyond) {
  Give(arena, 19 * 3 * 4 + 4);
  Give(arena + 8192, 39 * 4 - 4);
  float result = 7;
  SUCCEED(cublasSdot(NewHandle(s1), 20, Floats(0), 3, Floats(8192), 2, &result));
}
CASE(MatrixAndVector) {  // 10 by 30, transposed: x has 10, y 30
  Give(arena + kA, kBytesA);
  Give(arena + kB, 10 * 4);
  Give(arena + kC, 30 * 4);
  SUCCEED(cublasSgemv(NewHandle(s1), CUBLAS_OP_T, 10, 30, &kOne, Floats(kA), 12, Floats(kB), 1, &kNone, Floats(kC), 1));
}
CASE(Triangular) {  // A is 20 by 20 from the right, B 10 by 20
  Give(arena + kA, 20 * 20 * 4);
  Give(arena + kC, kBytesC);
  SUCCEED(cublasStrsm(NewHandle(s1), CUBLAS_SIDE_RIGHT, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, CUBLAS_DIAG_UNIT, 10, 20,
                      &kOne, Floats(kA), 20, Floats(kC), 10));
}

// --- cuBLASLt
// ----------------------------------------------------------------------------------------------------------------

// D (10 by 20) ← A (10 by 30) B (30 by 20), with an epilogue.
void LtProduct(cublasLtEpilogue_t epilogue, float* bias, CUstream stream) {
  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulDesc_t desc = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, d = nullptr;
  cublasLtMatmulPreference_t preference = nullptr;
  SUCCEED(cublasLtCreate(&handle));
  SUCCEED(cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  SUCCEED(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue));
  SUCCEED(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias));
  SUCCEED(cublasLtMatrixLayoutCreate(&a, CUDA_R_32F, 10, 30, 12));
  SUCCEED(cublasLtMatrixLayoutCreate(&b, CUDA_R_32F, 30, 20, 30));
  SUCCEED(cublasLtMatrixLayoutCreate(&d, CUDA_R_32F, 10, 20, 10));
  SUCCEED(cublasLtMatmulPreferenceCreate(&preference));
  uint64_t rows = 0;
  size_t written = 0;
  SUCCEED(cublasLtMatrixLayoutGetAttribute(b, CUBLASLT_MATRIX_LAYOUT_ROWS, &rows, sizeof rows, &written));
  EXPECT(rows == 30 && written == sizeof rows);
  cublasLtMatmulHeuristicResult_t result;
  int found = 0;
  SUCCEED(cublasLtMatmulAlgoGetHeuristic(handle, desc, a, b, d, d, preference, 1, &result, &found));
  EXPECT(found == 1 && result.state == CUBLAS_STATUS_SUCCESS && result.workspaceSize == 0);
  SUCCEED(cublasLtMatmul(handle, desc, &kOne, Floats(kA), a, Floats(kB), b, &kNone, Floats(kC), d, Floats(kC), d,
                         &result.algo, nullptr, 0, stream));
  SUCCEED(cublasLtMatmulPreferenceDestroy(preference));
  for (cublasLtMatrixLayout_t layout : {a, b, d}) SUCCEED(cublasLtMatrixLayoutDestroy(layout));
  SUCCEED(cublasLtMatmulDescDestroy(desc));
  SUCCEED(cublasLtDestroy(handle));
}

CASE(LtClean) {
  GiveMatrices();
  Give(arena + 32768, 10 * 4);
  LtProduct(CUBLASLT_EPILOGUE_RELU_BIAS, Floats(32768), s1);
}
CASE(LtWithoutEpilogueNoBias) {
  GiveMatrices();
  LtProduct(CUBLASLT_EPILOGUE_DEFAULT, Floats(32768), s1);
}
CASE(LtBeyondBias) {
  GiveMatrices();
  Give(arena + 32768, 9 * 4);
  LtProduct(CUBLASLT_EPILOGUE_BIAS, Floats(32768), s1);
}
CASE(LtBiasGradient) {
  GiveMatrices();
  Give(arena + 32768, 20 * 4);
  LtProduct(CUBLASLT_EPILOGUE_BGRADB, Floats(32768), s1);
}
CASE(LtOnAnotherStream) {
  UsedOnce();
  GiveMatrices();
  LtProduct(CUBLASLT_EPILOGUE_DEFAULT, nullptr, s2);
}
CASE(LtBeyondA) {
  GiveMatrices(kBytesA - 4);
  LtProduct(CUBLASLT_EPILOGUE_DEFAULT, nullptr, s1);
}

CASE(Settings) {
  cublasHandle_t handle = NewHandle(s1);
  cudaStream_t stream = nullptr;
  SUCCEED(cublasGetStream(handle, &stream));
  EXPECT(stream == s1);
  SUCCEED(cublasSetMathMode(handle, CUBLAS_TF32_TENSOR_OP_MATH));
  cublasMath_t math = CUBLAS_DEFAULT_MATH;
  SUCCEED(cublasGetMathMode(handle, &math));
  EXPECT(math == CUBLAS_TF32_TENSOR_OP_MATH);
  int version = 0, major = 0;
  SUCCEED(cublasGetVersion(handle, &version));
  SUCCEED(cublasGetProperty(MAJOR_VERSION, &major));
  EXPECT(version == CUBLAS_VERSION && major == CUBLAS_VER_MAJOR && cublasLtGetVersion() == CUBLAS_VERSION);
  EXPECT(cublasSetWorkspace(handle, Floats(4), 1024) == CUBLAS_STATUS_INVALID_VALUE);  // not aligned
  EXPECT(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 10, 20, 30, &kOne, Floats(kA), 9, Floats(kB), 30, &kNone,
                     Floats(kC), 10) == CUBLAS_STATUS_INVALID_VALUE);
  EXPECT(cublasSgemm(nullptr, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &kOne, Floats(kA), 1, Floats(kB), 1, &kNone,
                     Floats(kC), 1) == CUBLAS_STATUS_NOT_INITIALIZED);
  EXPECT(cublasSasum(handle, 1, Floats(kA), 1, Floats(kB)) == CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT(strcmp(cublasGetStatusName(CUBLAS_STATUS_NOT_SUPPORTED), "CUBLAS_STATUS_NOT_SUPPORTED") == 0);
  SUCCEED(cublasDestroy(handle));
}

}  // namespace
}  // namespace simgpu_test
