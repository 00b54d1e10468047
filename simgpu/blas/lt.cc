// The cuBLASLt shim: descriptors that store their settings, one algorithm that needs no workspace, and products that
// report to the checker which memory they use.
#include <cublasLt.h>

#include <cstring>
#include <map>
#include <new>
#include <vector>

#include "simgpu/blas/use.h"

namespace {

using simgpu::blas::CountCall;
using simgpu::blas::ElementBytes;
using simgpu::blas::Extent;
using simgpu::blas::Use;

// The content of any descriptor: attributes by number, as they were set. Thread-compatible.
struct Attributes {
  std::map<int, std::vector<char>> values;

  template <typename T>
  T Get(int attribute, T otherwise) const {
    const auto it = values.find(attribute);
    if (it == values.end() || it->second.size() < sizeof(T)) return otherwise;
    T value;
    memcpy(&value, it->second.data(), sizeof(T));
    return value;
  }
  template <typename T>
  void Put(int attribute, T value) {
    const char* bytes = reinterpret_cast<const char*>(&value);
    values[attribute].assign(bytes, bytes + sizeof(T));
  }
  cublasStatus_t Set(int attribute, const void* buffer, size_t bytes) try {
    if (buffer == nullptr || bytes == 0) return CUBLAS_STATUS_INVALID_VALUE;
    const char* from = static_cast<const char*>(buffer);
    values[attribute].assign(from, from + bytes);
    return CUBLAS_STATUS_SUCCESS;
  } catch (const std::bad_alloc&) {
    return CUBLAS_STATUS_ALLOC_FAILED;
  }
  // Returns an attribute; 0 if it was never set.
  cublasStatus_t Get(int attribute, void* buffer, size_t bytes, size_t* written) const {
    const auto it = values.find(attribute);
    const size_t size = it != values.end() ? it->second.size() : bytes;
    if (written != nullptr) *written = size;
    if (bytes == 0) return written != nullptr ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
    if (buffer == nullptr || bytes < size) return CUBLAS_STATUS_INVALID_VALUE;
    memset(buffer, 0, bytes);
    if (it != values.end()) memcpy(buffer, it->second.data(), size);
    return CUBLAS_STATUS_SUCCESS;
  }
};

template <typename Handle>
Attributes* Of(Handle handle) {
  return reinterpret_cast<Attributes*>(const_cast<std::remove_const_t<std::remove_pointer_t<Handle>>*>(handle));
}

template <typename Handle, typename Fill>
cublasStatus_t Create(Handle* handle, Fill fill) try {
  if (handle == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  auto* attributes = new Attributes;
  fill(attributes);
  *handle = reinterpret_cast<Handle>(attributes);
  return CUBLAS_STATUS_SUCCESS;
} catch (const std::bad_alloc&) {
  return CUBLAS_STATUS_ALLOC_FAILED;
}

template <typename Handle>
cublasStatus_t Destroy(Handle handle) {
  delete Of(handle);
  return CUBLAS_STATUS_SUCCESS;
}

struct LtHandle {
  uint64_t magic;
};

uint64_t Bytes(cublasLtMatrixLayout_t layout) {
  const Attributes* a = Of(layout);
  const auto rows = static_cast<int64_t>(a->Get<uint64_t>(CUBLASLT_MATRIX_LAYOUT_ROWS, 0));
  const auto columns = static_cast<int64_t>(a->Get<uint64_t>(CUBLASLT_MATRIX_LAYOUT_COLS, 0));
  const bool by_rows = a->Get<int32_t>(CUBLASLT_MATRIX_LAYOUT_ORDER, CUBLASLT_ORDER_COL) == CUBLASLT_ORDER_ROW;
  return Extent(by_rows ? columns : rows, by_rows ? rows : columns, a->Get<int64_t>(CUBLASLT_MATRIX_LAYOUT_LD, 0),
                a->Get<int32_t>(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, 1),
                a->Get<int64_t>(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, 0),
                ElementBytes(static_cast<cudaDataType>(a->Get<uint32_t>(CUBLASLT_MATRIX_LAYOUT_TYPE, 0))));
}

}  // namespace

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  if (handle == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *handle = reinterpret_cast<cublasLtHandle_t>(new (std::nothrow) LtHandle{1});
  return *handle != nullptr ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete reinterpret_cast<LtHandle*>(handle);
  return CUBLAS_STATUS_SUCCESS;
}
size_t cublasLtGetVersion() { return CUBLAS_VERSION; }
size_t cublasLtGetCudartVersion() { return CUDART_VERSION; }

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type, uint64_t rows,
                                          uint64_t columns, int64_t leading) {
  return Create(layout, [&](Attributes* a) {
    a->Put<uint32_t>(CUBLASLT_MATRIX_LAYOUT_TYPE, type);
    a->Put<int32_t>(CUBLASLT_MATRIX_LAYOUT_ORDER, CUBLASLT_ORDER_COL);
    a->Put<uint64_t>(CUBLASLT_MATRIX_LAYOUT_ROWS, rows);
    a->Put<uint64_t>(CUBLASLT_MATRIX_LAYOUT_COLS, columns);
    a->Put<int64_t>(CUBLASLT_MATRIX_LAYOUT_LD, leading);
    a->Put<int32_t>(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, 1);
    a->Put<int64_t>(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, 0);
  });
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* desc, cublasComputeType_t compute, cudaDataType_t scale) {
  return Create(desc, [&](Attributes* a) {
    a->Put<int32_t>(CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, compute);
    a->Put<int32_t>(CUBLASLT_MATMUL_DESC_SCALE_TYPE, scale);
  });
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  return Create(preference, [](Attributes*) {});
}

#define SIMGPU_LT_DESCRIPTOR(name, Handle, Attribute)                                                                 \
  cublasStatus_t cublasLt##name##Destroy(Handle handle) { return Destroy(handle); }                                   \
  cublasStatus_t cublasLt##name##SetAttribute(Handle handle, Attribute attribute, const void* buffer, size_t bytes) { \
    return handle != nullptr ? Of(handle)->Set(attribute, buffer, bytes) : CUBLAS_STATUS_INVALID_VALUE;               \
  }                                                                                                                   \
  cublasStatus_t cublasLt##name##GetAttribute(Handle handle, Attribute attribute, void* buffer, size_t bytes,         \
                                              size_t* written) {                                                      \
    return handle != nullptr ? Of(handle)->Get(attribute, buffer, bytes, written) : CUBLAS_STATUS_INVALID_VALUE;      \
  }
SIMGPU_LT_DESCRIPTOR(MatrixLayout, cublasLtMatrixLayout_t, cublasLtMatrixLayoutAttribute_t)
SIMGPU_LT_DESCRIPTOR(MatmulDesc, cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t)
SIMGPU_LT_DESCRIPTOR(MatmulPreference, cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t)

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
                                              cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                                              cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t, int requested,
                                              cublasLtMatmulHeuristicResult_t results[], int* found) {
  if (found == nullptr || results == nullptr || requested < 1 || desc == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *found = 0;
  for (const cublasLtMatrixLayout_t layout : {a, b, c, d}) {
    if (layout == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
    if (ElementBytes(static_cast<cudaDataType>(Of(layout)->Get<uint32_t>(CUBLASLT_MATRIX_LAYOUT_TYPE, 0))) == 0) {
      return CUBLAS_STATUS_NOT_SUPPORTED;
    }
  }
  results[0] = {};
  results[0].state = CUBLAS_STATUS_SUCCESS;
  results[0].wavesCount = 1;
  *found = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoInit(cublasLtHandle_t, cublasComputeType_t, cudaDataType_t, cudaDataType_t,
                                      cudaDataType_t, cudaDataType_t, cudaDataType_t, int,
                                      cublasLtMatmulAlgo_t* algorithm) {
  if (algorithm == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *algorithm = {};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                                       cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                       const cublasLtMatmulAlgo_t*, cublasLtMatmulHeuristicResult_t* result) {
  if (result == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *result = {};
  result->state = CUBLAS_STATUS_SUCCESS;
  result->wavesCount = 1;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoConfigSetAttribute(cublasLtMatmulAlgo_t* algorithm,
                                                    cublasLtMatmulAlgoConfigAttributes_t, const void*, size_t) {
  return algorithm != nullptr ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}
cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t* algorithm,
                                                    cublasLtMatmulAlgoConfigAttributes_t, void* buffer, size_t bytes,
                                                    size_t* written) {
  if (algorithm == nullptr || buffer == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  memset(buffer, 0, bytes);
  if (written != nullptr) *written = bytes;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void* alpha, const void* A,
                              cublasLtMatrixLayout_t layout_a, const void* B, cublasLtMatrixLayout_t layout_b,
                              const void* beta, const void* C, cublasLtMatrixLayout_t layout_c, void* D,
                              cublasLtMatrixLayout_t layout_d, const cublasLtMatmulAlgo_t*, void* workspace,
                              size_t workspace_bytes, cudaStream_t stream) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (desc == nullptr || layout_a == nullptr || layout_b == nullptr || layout_c == nullptr || layout_d == nullptr) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  CountCall(true);
  const Attributes* product = Of(desc);
  const auto scale = static_cast<cudaDataType>(product->Get<int32_t>(CUBLASLT_MATMUL_DESC_SCALE_TYPE, CUDA_R_32F));
  if (product->Get<int32_t>(CUBLASLT_MATMUL_DESC_POINTER_MODE, CUBLASLT_POINTER_MODE_HOST) ==
      CUBLASLT_POINTER_MODE_DEVICE) {
    Use(stream, alpha, ElementBytes(scale), false);
    Use(stream, beta, ElementBytes(scale), false);
  }
  Use(stream, A, Bytes(layout_a), false);
  Use(stream, B, Bytes(layout_b), false);
  if (C != D) Use(stream, C, Bytes(layout_c), false);
  Use(stream, D, Bytes(layout_d), true);
  // At least one value per row of D; its type may differ from D's.
  const auto rows = Of(layout_d)->Get<uint64_t>(CUBLASLT_MATRIX_LAYOUT_ROWS, 0);
  const auto type_d = static_cast<cudaDataType>(Of(layout_d)->Get<uint32_t>(CUBLASLT_MATRIX_LAYOUT_TYPE, 0));
  const auto type_bias = static_cast<cudaDataType>(
      product->Get<int32_t>(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, static_cast<int32_t>(type_d)));
  const auto epilogue = product->Get<uint32_t>(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_DEFAULT);
  const auto columns = Of(layout_d)->Get<uint64_t>(CUBLASLT_MATRIX_LAYOUT_COLS, 0);
  const void* bias = product->Get<void*>(CUBLASLT_MATMUL_DESC_BIAS_POINTER, nullptr);
  constexpr uint32_t kBiasGradient = CUBLASLT_EPILOGUE_DRELU_BGRAD & ~CUBLASLT_EPILOGUE_DRELU;
  if ((epilogue & CUBLASLT_EPILOGUE_BIAS) != 0) Use(stream, bias, rows * ElementBytes(type_bias), false);
  if ((epilogue & (kBiasGradient | CUBLASLT_EPILOGUE_BGRADA)) != 0)
    Use(stream, bias, rows * ElementBytes(type_bias), true);
  if ((epilogue & CUBLASLT_EPILOGUE_BGRADB) != 0) Use(stream, bias, columns * ElementBytes(type_bias), true);
  for (const int pointer : {CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER,
                            CUBLASLT_MATMUL_DESC_C_SCALE_POINTER, CUBLASLT_MATMUL_DESC_D_SCALE_POINTER}) {
    Use(stream, product->Get<void*>(pointer, nullptr), sizeof(float), false);
  }
  Use(stream, workspace, workspace_bytes, true);
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
