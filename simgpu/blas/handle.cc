// Handles and their settings; status names. Copies of vectors and matrices are left to the stubs.
#include <new>

#include "simgpu/blas/cublas.h"

using simgpu::blas::Valid;

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  if (handle == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *handle = new (std::nothrow) cublasContext;
  return *handle != nullptr ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  if (!Valid(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  handle->magic = 0;
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetVersion_v2(cublasHandle_t, int* version) {
  if (version == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *version = CUBLAS_VERSION;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetProperty(libraryPropertyType type, int* value) {
  if (value == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  switch (type) {
    case MAJOR_VERSION:
      *value = CUBLAS_VER_MAJOR;
      return CUBLAS_STATUS_SUCCESS;
    case MINOR_VERSION:
      *value = CUBLAS_VER_MINOR;
      return CUBLAS_STATUS_SUCCESS;
    case PATCH_LEVEL:
      *value = CUBLAS_VER_PATCH;
      return CUBLAS_STATUS_SUCCESS;
    default:
      return CUBLAS_STATUS_INVALID_VALUE;
  }
}

// Setting a stream drops the user's workspace, as the library documents.
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  if (!Valid(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  handle->stream = stream;
  handle->workspace = nullptr;
  handle->workspace_bytes = 0;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace, size_t bytes) {
  if (!Valid(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (reinterpret_cast<uintptr_t>(workspace) % 256 != 0) return CUBLAS_STATUS_INVALID_VALUE;
  handle->workspace = workspace;
  handle->workspace_bytes = bytes;
  return CUBLAS_STATUS_SUCCESS;
}

#define SIMGPU_BLAS_SETTING(name, type, member)                       \
  cublasStatus_t cublasSet##name(cublasHandle_t handle, type value) { \
    if (!Valid(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;         \
    handle->member = value;                                           \
    return CUBLAS_STATUS_SUCCESS;                                     \
  }                                                                   \
  cublasStatus_t cublasGet##name(cublasHandle_t handle, type* value) SIMGPU_BLAS_GET(member)
#define SIMGPU_BLAS_GET(member)                               \
  {                                                           \
    if (!Valid(handle)) return CUBLAS_STATUS_NOT_INITIALIZED; \
    if (value == nullptr) return CUBLAS_STATUS_INVALID_VALUE; \
    *value = handle->member;                                  \
    return CUBLAS_STATUS_SUCCESS;                             \
  }
SIMGPU_BLAS_SETTING(PointerMode_v2, cublasPointerMode_t, pointer_mode)
SIMGPU_BLAS_SETTING(AtomicsMode, cublasAtomicsMode_t, atomics_mode)
SIMGPU_BLAS_SETTING(MathMode, cublasMath_t, math_mode)
SIMGPU_BLAS_SETTING(SmCountTarget, int, sm_count_target)
cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t* value) SIMGPU_BLAS_GET(stream)

    const char* cublasGetStatusName(cublasStatus_t status) {
  switch (status) {
#define SIMGPU_BLAS_NAME(name) \
  case name:                   \
    return #name;
    SIMGPU_BLAS_NAME(CUBLAS_STATUS_SUCCESS)
    SIMGPU_BLAS_NAME(CUBLAS_STATUS_NOT_INITIALIZED)
    SIMGPU_BLAS_NAME(CUBLAS_STATUS_ALLOC_FAILED)
    SIMGPU_BLAS_NAME(CUBLAS_STATUS_INVALID_VALUE)
    SIMGPU_BLAS_NAME(CUBLAS_STATUS_ARCH_MISMATCH)
    SIMGPU_BLAS_NAME(CUBLAS_STATUS_MAPPING_ERROR)
    SIMGPU_BLAS_NAME(CUBLAS_STATUS_EXECUTION_FAILED)
    SIMGPU_BLAS_NAME(CUBLAS_STATUS_INTERNAL_ERROR)
    SIMGPU_BLAS_NAME(CUBLAS_STATUS_NOT_SUPPORTED)
    SIMGPU_BLAS_NAME(CUBLAS_STATUS_LICENSE_ERROR)
    default:
      return "CUBLAS_STATUS_UNKNOWN";
  }
}

const char* cublasGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_NOT_SUPPORTED ? "not simulated" : cublasGetStatusName(status);
}

}  // extern "C"
