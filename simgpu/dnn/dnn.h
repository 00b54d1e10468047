// The cuDNN shim: a handle, the descriptors of the older interface, and what its calls have in common. Nothing is computed;
// every call that would do work tells the checker which memory it reads and writes, on the handle's stream.
#pragma once

#include <cudnn.h>

#include <cstdint>
#include <new>
#include <vector>

#include "simgpu/blas/use.h"

// cudnnHandle_t points to it. As with the library's own: not for two threads at a time.
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

// Bits of one element; 0: not a type this knows.
uint64_t ElementBits(cudnnDataType_t type);

// Bytes from the first to the last element of a tensor with `count` dimensions, strides in elements; 0 if it has none.
// One that is packed as a bit or as half a byte counts as that.
uint64_t TensorBytes(int64_t count, const int64_t dims[], const int64_t strides[], cudnnDataType_t type);
uint64_t TensorBytes(const cudnnTensorStruct& tensor);
uint64_t TensorBytes(const cudnnFilterStruct& filter);

// One call that does work: counted, then told range by range. Null, and ranges of no bytes, are passed over.
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

// The functions that make and unmake a descriptor of the older interface.
#define SIMGPU_DNN_DESCRIPTOR(name, Handle)                                                       \
  cudnnStatus_t cudnnCreate##name(Handle* descriptor) { return simgpu::dnn::Create(descriptor); } \
  cudnnStatus_t cudnnDestroy##name(Handle descriptor) { return simgpu::dnn::Destroy(descriptor); }
