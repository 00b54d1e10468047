// Dropout, pooling, activation, the CTC loss and spatial transformers: the parts of the older interface that programs
// still use.
#include <algorithm>

#include "simgpu/dnn/dnn.h"
#include "simgpu/dnn/workspace.h"

struct cudnnActivationStruct {
  cudnnActivationMode_t mode = CUDNN_ACTIVATION_RELU;
};

struct cudnnPoolingStruct {
  bool set = false;
};

struct cudnnCTCLossStruct {
  bool set = false;
};

struct cudnnSpatialTransformerStruct {
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  int dims[4] = {};  // of the output: N, C, H, W; N = 0: never set
};

namespace simgpu::dnn {
namespace {

constexpr size_t kDropoutStateBytes = size_t{1} << 20;  // 1 MiB, on any device

cudnnStatus_t SetDropout(cudnnDropoutDescriptor_t dropout, cudnnHandle_t handle, float probability, void* states,
                         size_t bytes) {
  if (dropout == nullptr || !Valid(handle)) return CUDNN_STATUS_BAD_PARAM;
  if (states != nullptr && bytes < kDropoutStateBytes) return CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT;
  *dropout = {probability, states, states != nullptr ? kDropoutStateBytes : 0};
  return CUDNN_STATUS_SUCCESS;
}

uint64_t ProductBytes(cudnnDataType_t type, std::initializer_list<int> factors) {
  uint64_t elements = 1;
  for (const int factor : factors) elements *= static_cast<uint64_t>(factor);
  return elements * ElementBits(type) / 8;
}

// The grid contains for each output pixel a position in the input; theta is one 2 by 3 matrix per image.
uint64_t GridBytes(const cudnnSpatialTransformerStruct& t) {
  return ProductBytes(t.type, {t.dims[0], t.dims[2], t.dims[3], 2});
}
uint64_t ThetaBytes(const cudnnSpatialTransformerStruct& t) { return ProductBytes(t.type, {t.dims[0], 2, 3}); }
bool Ready(cudnnHandle_t handle, cudnnSpatialTransformerDescriptor_t t) {
  return Valid(handle) && t != nullptr && t->dims[0] > 0;
}

// By the simulator's own rule: as many bytes as the probabilities.
cudnnStatus_t CtcWorkspace(cudnnHandle_t handle, cudnnCTCLossDescriptor_t loss, cudnnTensorDescriptor_t probabilities,
                           size_t* bytes) {
  if (!Valid(handle) || loss == nullptr || !loss->set || probabilities == nullptr || probabilities->count != 3 ||
      bytes == nullptr) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  *bytes = Rounded(TensorBytes(*probabilities));
  return CUDNN_STATUS_SUCCESS;
}

// Labels and lengths are in device memory if `on_device`, else in the host's.
cudnnStatus_t Ctc(cudnnHandle_t handle, cudnnCTCLossDescriptor_t loss, cudnnTensorDescriptor_t probabilities_of,
                  const void* probabilities, const int* label_lengths, const int* input_lengths, bool on_device,
                  void* costs, cudnnTensorDescriptor_t gradients_of, void* gradients, size_t workspace_bytes,
                  void* workspace) {
  size_t needed = 0;
  const cudnnStatus_t status = CtcWorkspace(handle, loss, probabilities_of, &needed);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  if (probabilities == nullptr || costs == nullptr || workspace == nullptr || workspace_bytes < needed) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  const auto batch = static_cast<uint64_t>(probabilities_of->dims[1]);  // time, batch, alphabet
  Work work(handle);
  work.Read(probabilities, TensorBytes(*probabilities_of)).Write(workspace, needed);
  if (on_device) work.Read(label_lengths, batch * sizeof(int)).Read(input_lengths, batch * sizeof(int));
  work.Write(costs, batch * ElementBits(probabilities_of->type) / 8);
  if (gradients_of != nullptr) work.Write(gradients, TensorBytes(*gradients_of));
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace
}  // namespace simgpu::dnn

using namespace simgpu::dnn;  // NOLINT: the functions below are of the C interface

extern "C" {

SIMGPU_DNN_DESCRIPTOR(DropoutDescriptor, cudnnDropoutDescriptor_t)
SIMGPU_DNN_DESCRIPTOR(ActivationDescriptor, cudnnActivationDescriptor_t)
SIMGPU_DNN_DESCRIPTOR(PoolingDescriptor, cudnnPoolingDescriptor_t)
SIMGPU_DNN_DESCRIPTOR(CTCLossDescriptor, cudnnCTCLossDescriptor_t)
SIMGPU_DNN_DESCRIPTOR(SpatialTransformerDescriptor, cudnnSpatialTransformerDescriptor_t)

cudnnStatus_t cudnnDropoutGetStatesSize(cudnnHandle_t handle, size_t* bytes) {
  if (!Valid(handle) || bytes == nullptr) return CUDNN_STATUS_BAD_PARAM;
  *bytes = kDropoutStateBytes;
  return CUDNN_STATUS_SUCCESS;
}
// The states are written here ...
cudnnStatus_t cudnnSetDropoutDescriptor(cudnnDropoutDescriptor_t dropout, cudnnHandle_t handle, float probability,
                                        void* states, size_t bytes, unsigned long long) {
  const cudnnStatus_t status = SetDropout(dropout, handle, probability, states, bytes);
  if (status == CUDNN_STATUS_SUCCESS && states != nullptr) Work(handle).Write(states, kDropoutStateBytes);
  return status;
}
// ... and exist already here.
cudnnStatus_t cudnnRestoreDropoutDescriptor(cudnnDropoutDescriptor_t dropout, cudnnHandle_t handle, float probability,
                                            void* states, size_t bytes, unsigned long long) {
  return SetDropout(dropout, handle, probability, states, bytes);
}

cudnnStatus_t cudnnSetActivationDescriptor(cudnnActivationDescriptor_t activation, cudnnActivationMode_t mode,
                                           cudnnNanPropagation_t, double) {
  if (activation == nullptr) return CUDNN_STATUS_BAD_PARAM;
  activation->mode = mode;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetPooling2dDescriptor(cudnnPoolingDescriptor_t pooling, cudnnPoolingMode_t, cudnnNanPropagation_t,
                                          int height, int width, int, int, int vertical_stride, int horizontal_stride) {
  if (pooling == nullptr || height < 1 || width < 1 || vertical_stride < 1 || horizontal_stride < 1) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  pooling->set = true;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnPoolingForward(cudnnHandle_t handle, const cudnnPoolingDescriptor_t pooling, const void*,
                                  const cudnnTensorDescriptor_t x_of, const void* x, const void*,
                                  const cudnnTensorDescriptor_t y_of, void* y) {
  if (!Valid(handle) || pooling == nullptr || !pooling->set || x_of == nullptr || y_of == nullptr || x == nullptr ||
      y == nullptr) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  Work(handle).Read(x, TensorBytes(*x_of)).Write(y, TensorBytes(*y_of));
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetCTCLossDescriptorEx(cudnnCTCLossDescriptor_t loss, cudnnDataType_t type,
                                          cudnnLossNormalizationMode_t, cudnnNanPropagation_t) {
  if (loss == nullptr || type != CUDNN_DATA_FLOAT) return CUDNN_STATUS_BAD_PARAM;
  loss->set = true;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetCTCLossDescriptor_v9(cudnnCTCLossDescriptor_t loss, cudnnDataType_t type,
                                           cudnnLossNormalizationMode_t, cudnnCTCGradMode_t, int max_label_length) {
  if (loss == nullptr || type != CUDNN_DATA_FLOAT || max_label_length < 0) return CUDNN_STATUS_BAD_PARAM;
  loss->set = true;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetCTCLossWorkspaceSize(cudnnHandle_t handle, const cudnnTensorDescriptor_t probabilities,
                                           const cudnnTensorDescriptor_t, const int*, const int*, const int*,
                                           cudnnCTCLossAlgo_t, cudnnCTCLossDescriptor_t loss, size_t* bytes) {
  return CtcWorkspace(handle, loss, probabilities, bytes);
}
cudnnStatus_t cudnnGetCTCLossWorkspaceSize_v8(cudnnHandle_t handle, cudnnCTCLossAlgo_t, cudnnCTCLossDescriptor_t loss,
                                              const cudnnTensorDescriptor_t probabilities,
                                              const cudnnTensorDescriptor_t, size_t* bytes) {
  return CtcWorkspace(handle, loss, probabilities, bytes);
}
cudnnStatus_t cudnnCTCLoss(cudnnHandle_t handle, const cudnnTensorDescriptor_t probabilities_of,
                           const void* probabilities, const int[], const int label_lengths[], const int input_lengths[],
                           void* costs, const cudnnTensorDescriptor_t gradients_of, void* gradients, cudnnCTCLossAlgo_t,
                           cudnnCTCLossDescriptor_t loss, void* workspace, size_t bytes) {
  return Ctc(handle, loss, probabilities_of, probabilities, label_lengths, input_lengths, false, costs, gradients_of,
             gradients, bytes, workspace);
}
// The number of labels is the sum of their lengths, which are in device memory: reports only the two arrays of lengths.
cudnnStatus_t cudnnCTCLoss_v8(cudnnHandle_t handle, cudnnCTCLossAlgo_t, cudnnCTCLossDescriptor_t loss,
                              const cudnnTensorDescriptor_t probabilities_of, const void* probabilities, const int[],
                              const int label_lengths[], const int input_lengths[], void* costs,
                              const cudnnTensorDescriptor_t gradients_of, void* gradients, size_t bytes,
                              void* workspace) {
  return Ctc(handle, loss, probabilities_of, probabilities, label_lengths, input_lengths, true, costs, gradients_of,
             gradients, bytes, workspace);
}

cudnnStatus_t cudnnSetSpatialTransformerNdDescriptor(cudnnSpatialTransformerDescriptor_t transformer,
                                                     cudnnSamplerType_t, cudnnDataType_t type, const int count,
                                                     const int dims[]) {
  if (transformer == nullptr || dims == nullptr || count < 1) return CUDNN_STATUS_BAD_PARAM;
  if (count != 4) return CUDNN_STATUS_NOT_SUPPORTED;
  if (std::any_of(dims, dims + 4, [](int extent) { return extent < 1; })) return CUDNN_STATUS_BAD_PARAM;
  transformer->type = type;
  std::copy(dims, dims + 4, transformer->dims);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSpatialTfGridGeneratorForward(cudnnHandle_t handle, const cudnnSpatialTransformerDescriptor_t t,
                                                 const void* theta, void* grid) {
  if (!Ready(handle, t) || theta == nullptr || grid == nullptr) return CUDNN_STATUS_BAD_PARAM;
  Work(handle).Read(theta, ThetaBytes(*t)).Write(grid, GridBytes(*t));
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSpatialTfGridGeneratorBackward(cudnnHandle_t handle, const cudnnSpatialTransformerDescriptor_t t,
                                                  const void* d_grid, void* d_theta) {
  if (!Ready(handle, t) || d_grid == nullptr || d_theta == nullptr) return CUDNN_STATUS_BAD_PARAM;
  Work(handle).Read(d_grid, GridBytes(*t)).Write(d_theta, ThetaBytes(*t));
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSpatialTfSamplerForward(cudnnHandle_t handle, cudnnSpatialTransformerDescriptor_t t, const void*,
                                           const cudnnTensorDescriptor_t x_of, const void* x, const void* grid,
                                           const void*, cudnnTensorDescriptor_t y_of, void* y) {
  if (!Ready(handle, t) || x_of == nullptr || y_of == nullptr || x == nullptr || grid == nullptr || y == nullptr) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  Work(handle).Read(x, TensorBytes(*x_of)).Read(grid, GridBytes(*t)).Write(y, TensorBytes(*y_of));
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSpatialTfSamplerBackward(cudnnHandle_t handle, cudnnSpatialTransformerDescriptor_t t, const void*,
                                            const cudnnTensorDescriptor_t x_of, const void* x, const void*,
                                            const cudnnTensorDescriptor_t dx_of, void* dx, const void*,
                                            const cudnnTensorDescriptor_t dy_of, const void* dy, const void* grid,
                                            const void*, void* d_grid) {
  if (!Ready(handle, t) || x_of == nullptr || dx_of == nullptr || dy_of == nullptr || x == nullptr || dx == nullptr ||
      dy == nullptr || grid == nullptr || d_grid == nullptr) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  Work work(handle);
  work.Read(x, TensorBytes(*x_of)).Read(dy, TensorBytes(*dy_of)).Read(grid, GridBytes(*t));
  work.Write(dx, TensorBytes(*dx_of)).Write(d_grid, GridBytes(*t));
  return CUDNN_STATUS_SUCCESS;
}

}  // extern "C"
