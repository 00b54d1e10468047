// Descriptors of tensors and filters.
#include <algorithm>
#include <cstdlib>

#include "simgpu/dnn/dnn.h"

namespace simgpu::dnn {

uint64_t ElementBits(cudnnDataType_t type) {
  switch (static_cast<int>(type)) {  // numbers above CUDNN_DATA_FAST_FLOAT_FOR_FP8 are not in all headers of version 9
    case CUDNN_DATA_BOOLEAN:
      return 1;
    case 16:  // FP4_E2M1
    case 17:  // INT4
    case 18:  // UINT4
      return 4;
    case CUDNN_DATA_INT8:
    case CUDNN_DATA_UINT8:
    case CUDNN_DATA_FP8_E4M3:
    case CUDNN_DATA_FP8_E5M2:
    case 15:  // FP8_E8M0
      return 8;
    case CUDNN_DATA_HALF:
    case CUDNN_DATA_BFLOAT16:
      return 16;
    case CUDNN_DATA_FLOAT:
    case CUDNN_DATA_INT32:
    case CUDNN_DATA_INT8x4:
    case CUDNN_DATA_UINT8x4:
    case 19:  // UINT32
      return 32;
    case CUDNN_DATA_DOUBLE:
    case CUDNN_DATA_INT64:
    case 20:  // COMPLEX_FP32
      return 64;
    case 21:  // COMPLEX_FP64
      return 128;
    case CUDNN_DATA_INT8x32:
      return 256;
    default:
      return 0;
  }
}

uint64_t TensorBytes(int64_t count, const int64_t dims[], const int64_t strides[], cudnnDataType_t type) {
  if (count <= 0) return 0;
  uint64_t last = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (dims[i] <= 0) return 0;
    last += static_cast<uint64_t>(dims[i] - 1) * static_cast<uint64_t>(std::abs(strides[i]));
  }
  return ((last + 1) * ElementBits(type) + 7) / 8;
}

uint64_t TensorBytes(const cudnnTensorStruct& tensor) {
  int64_t dims[CUDNN_DIM_MAX], strides[CUDNN_DIM_MAX];
  std::copy(tensor.dims, tensor.dims + tensor.count, dims);
  std::copy(tensor.strides, tensor.strides + tensor.count, strides);
  return TensorBytes(tensor.count, dims, strides, tensor.type);
}

uint64_t TensorBytes(const cudnnFilterStruct& filter) {
  if (filter.count == 0) return 0;
  uint64_t elements = 1;
  for (int i = 0; i < filter.count; ++i) elements *= static_cast<uint64_t>(std::max(filter.dims[i], 0));
  return (elements * ElementBits(filter.type) + 7) / 8;
}

}  // namespace simgpu::dnn

using simgpu::dnn::ElementBits;

extern "C" {

SIMGPU_DNN_DESCRIPTOR(TensorDescriptor, cudnnTensorDescriptor_t)
SIMGPU_DNN_DESCRIPTOR(FilterDescriptor, cudnnFilterDescriptor_t)

cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t tensor, cudnnDataType_t type, int count,
                                         const int dims[], const int strides[]) {
  if (tensor == nullptr || dims == nullptr || strides == nullptr || count < 1) return CUDNN_STATUS_BAD_PARAM;
  if (count > CUDNN_DIM_MAX || ElementBits(type) == 0) return CUDNN_STATUS_NOT_SUPPORTED;
  if (std::any_of(dims, dims + count, [](int extent) { return extent < 0; })) return CUDNN_STATUS_BAD_PARAM;
  tensor->type = type;
  tensor->count = count;
  std::copy(dims, dims + count, tensor->dims);
  std::copy(strides, strides + count, tensor->strides);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetTensor4dDescriptorEx(cudnnTensorDescriptor_t tensor, cudnnDataType_t type, int n, int c, int h,
                                           int w, int n_stride, int c_stride, int h_stride, int w_stride) {
  const int dims[] = {n, c, h, w}, strides[] = {n_stride, c_stride, h_stride, w_stride};
  return cudnnSetTensorNdDescriptor(tensor, type, 4, dims, strides);
}

cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t tensor, cudnnTensorFormat_t format,
                                         cudnnDataType_t type, int n, int c, int h, int w) {
  if (format == CUDNN_TENSOR_NHWC)
    return cudnnSetTensor4dDescriptorEx(tensor, type, n, c, h, w, c * h * w, 1, c * w, c);
  if (format != CUDNN_TENSOR_NCHW) return CUDNN_STATUS_NOT_SUPPORTED;
  return cudnnSetTensor4dDescriptorEx(tensor, type, n, c, h, w, c * h * w, h * w, w, 1);
}

// `requested` limits the written dimensions; `count` is their total number.
cudnnStatus_t cudnnGetTensorNdDescriptor(const cudnnTensorDescriptor_t tensor, int requested, cudnnDataType_t* type,
                                         int* count, int dims[], int strides[]) {
  if (tensor == nullptr || requested < 0) return CUDNN_STATUS_BAD_PARAM;
  const int given = std::min(requested, tensor->count);
  if (type != nullptr) *type = tensor->type;
  if (count != nullptr) *count = tensor->count;
  if (dims != nullptr) std::copy(tensor->dims, tensor->dims + given, dims);
  if (strides != nullptr) std::copy(tensor->strides, tensor->strides + given, strides);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetTensorSizeInBytes(const cudnnTensorDescriptor_t tensor, size_t* size) {
  if (tensor == nullptr || size == nullptr) return CUDNN_STATUS_BAD_PARAM;
  *size = simgpu::dnn::TensorBytes(*tensor);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t filter, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int count, const int dims[]) {
  if (filter == nullptr || dims == nullptr || count < 1) return CUDNN_STATUS_BAD_PARAM;
  if (count > CUDNN_DIM_MAX || ElementBits(type) == 0) return CUDNN_STATUS_NOT_SUPPORTED;
  if (std::any_of(dims, dims + count, [](int extent) { return extent < 0; })) return CUDNN_STATUS_BAD_PARAM;
  filter->type = type;
  filter->format = format;
  filter->count = count;
  std::copy(dims, dims + count, filter->dims);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t filter, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int k, int c, int h, int w) {
  const int dims[] = {k, c, h, w};
  return cudnnSetFilterNdDescriptor(filter, type, format, 4, dims);
}

cudnnStatus_t cudnnGetFilterNdDescriptor(const cudnnFilterDescriptor_t filter, int requested, cudnnDataType_t* type,
                                         cudnnTensorFormat_t* format, int* count, int dims[]) {
  if (filter == nullptr || requested < 0) return CUDNN_STATUS_BAD_PARAM;
  if (type != nullptr) *type = filter->type;
  if (format != nullptr) *format = filter->format;
  if (count != nullptr) *count = filter->count;
  if (dims != nullptr) std::copy(filter->dims, filter->dims + std::min(requested, filter->count), dims);
  return CUDNN_STATUS_SUCCESS;
}

}  // extern "C"
