// The cuDNN shim: a handle, the descriptors of the older interface, and the common parts of its calls. It computes
// nothing. Every call that would do work tells the checker which memory it reads and writes, on the handle's stream.
#pragma once

#include <cudnn.h>

#include <cstdint>
#include <new>
#include <vector>

#include "simgpu/blas/use.h"

// cudnnHandle_t points to it. As with the real library, not for two threads at a time.
struct cudnnContext {
  static constexpr uint32_t kMagic = 0x646e6e39;
  uint32_t magic = kMagic;
  cudaStream_t stream = nullptr;
};

struct cudnnTensorStruct {
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  int count = 0;  // of dimensions; 0: never set
  int dims[CUDNN_DIM_MAX] = {};
  int strides[CUDNN_DIM_MAX] = {};
};

struct cudnnFilterStruct {
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  cudnnTensorFormat_t format = CUDNN_TENSOR_NCHW;
  int count = 0;
  int dims[CUDNN_DIM_MAX] = {};
};

struct cudnnDropoutStruct {
  float probability = 0;
  void* states = nullptr;
  size_t state_bytes = 0;
};

namespace simgpu::dnn {

inline bool Valid(cudnnHandle_t handle) { return handle != nullptr && handle->magic == cudnnContext::kMagic; }

// Returns the bits of one element; 0: an unknown type.
uint64_t ElementBits(cudnnDataType_t type);

// Returns the bytes from the first to the last element of a tensor with `count` dimensions, strides in elements; 0 if
// it has none. Elements packed as a bit or half a byte count as such.
uint64_t TensorBytes(int64_t count, const int64_t dims[], const int64_t strides[], cudnnDataType_t type);
uint64_t TensorBytes(const cudnnTensorStruct& tensor);
uint64_t TensorBytes(const cudnnFilterStruct& filter);

// One call that does work: counts it, then reports it range by range. Skips null and ranges of no bytes.
class Work {
 public:
  explicit Work(cudnnHandle_t handle) : stream_(handle->stream) { blas::CountCall(true); }
  Work& Read(const void* memory, uint64_t bytes) {
    blas::Use(stream_, memory, bytes, false);
    return *this;
  }
  Work& Write(const void* memory, uint64_t bytes) {
    blas::Use(stream_, memory, bytes, true);
    return *this;
  }

 private:
  cudaStream_t stream_;
};

template <typename T>
cudnnStatus_t Create(T** descriptor) {
  if (descriptor == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  *descriptor = new (std::nothrow) T;
  return *descriptor != nullptr ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
}

template <typename T>
cudnnStatus_t Destroy(T* descriptor) {
  delete descriptor;
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace simgpu::dnn

// The functions that create and destroy a descriptor of the older interface.
#define SIMGPU_DNN_DESCRIPTOR(name, Handle)                                                       \
  cudnnStatus_t cudnnCreate##name(Handle* descriptor) { return simgpu::dnn::Create(descriptor); } \
  cudnnStatus_t cudnnDestroy##name(Handle descriptor) { return simgpu::dnn::Destroy(descriptor); }
