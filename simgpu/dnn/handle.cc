// Handles, versions and error texts.
#include <cstdio>

#include "simgpu/dnn/dnn.h"

using simgpu::dnn::Valid;

extern "C" {

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) { return simgpu::dnn::Create(handle); }

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  if (!Valid(handle)) return CUDNN_STATUS_BAD_PARAM;
  handle->magic = 0;
  return simgpu::dnn::Destroy(handle);
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  if (!Valid(handle)) return CUDNN_STATUS_BAD_PARAM;
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t* stream) {
  if (!Valid(handle) || stream == nullptr) return CUDNN_STATUS_BAD_PARAM;
  *stream = handle->stream;
  return CUDNN_STATUS_SUCCESS;
}

// 9.99.0, for any headers of the build. A program refuses a library of another major version, or of a lower minor
// version, than it was compiled with, and accepts higher ones. So one simulated library serves every program of cuDNN
// 9. Programs also use the version to work around bugs of certain versions, which the shim does not have.
size_t cudnnGetVersion() { return 99900; }
size_t cudnnGetMaxDeviceVersion() { return cudnnGetVersion(); }
size_t cudnnGetCudartVersion() { return CUDART_VERSION; }

cudnnStatus_t cudnnGetProperty(libraryPropertyType type, int* value) {
  if (value == nullptr) return CUDNN_STATUS_BAD_PARAM;
  const int version = static_cast<int>(cudnnGetVersion());
  switch (type) {
    case MAJOR_VERSION:
      *value = version / 10000;
      return CUDNN_STATUS_SUCCESS;
    case MINOR_VERSION:
      *value = version / 100 % 100;
      return CUDNN_STATUS_SUCCESS;
    case PATCH_LEVEL:
      *value = version % 100;
      return CUDNN_STATUS_SUCCESS;
    default:
      return CUDNN_STATUS_BAD_PARAM;
  }
}

// There are no parts with versions of their own.
cudnnStatus_t cudnnGraphVersionCheck() { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnOpsVersionCheck() { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnCnnVersionCheck() { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnAdvVersionCheck() { return CUDNN_STATUS_SUCCESS; }

const char* cudnnGetErrorString(cudnnStatus_t status) {
  switch (status) {
#define SIMGPU_DNN_NAME(name) \
  case name:                  \
    return #name;
    SIMGPU_DNN_NAME(CUDNN_STATUS_SUCCESS)
    SIMGPU_DNN_NAME(CUDNN_STATUS_NOT_INITIALIZED)
    SIMGPU_DNN_NAME(CUDNN_STATUS_BAD_PARAM)
    SIMGPU_DNN_NAME(CUDNN_STATUS_BAD_PARAM_NULL_POINTER)
    SIMGPU_DNN_NAME(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED)
    SIMGPU_DNN_NAME(CUDNN_STATUS_BAD_PARAM_OUT_OF_BOUND)
    SIMGPU_DNN_NAME(CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT)
    SIMGPU_DNN_NAME(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH)
    SIMGPU_DNN_NAME(CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES)
    SIMGPU_DNN_NAME(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE)
    SIMGPU_DNN_NAME(CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE)
    SIMGPU_DNN_NAME(CUDNN_STATUS_NOT_SUPPORTED)
    SIMGPU_DNN_NAME(CUDNN_STATUS_INTERNAL_ERROR)
    SIMGPU_DNN_NAME(CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED)
    SIMGPU_DNN_NAME(CUDNN_STATUS_EXECUTION_FAILED)
    default:
      return "CUDNN_STATUS_UNKNOWN";
  }
}

// The text of an error is its status alone.
void cudnnGetLastErrorString(char* message, size_t size) {
  if (message != nullptr && size > 0) message[0] = '\0';
}

}  // extern "C"
