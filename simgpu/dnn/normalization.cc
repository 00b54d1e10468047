// Batch normalisation. Workspace and reserve follow the simulator's own rule, rounded up to 256 bytes.
//  - Workspace: two sums of 4 bytes per channel (none for CUDNN_BATCHNORM_PER_ACTIVATION).
//  - Reserve: for the backward pass, one bit per element if an activation follows.
#include "simgpu/dnn/dnn.h"
#include "simgpu/dnn/workspace.h"

namespace simgpu::dnn {
namespace {

uint64_t Elements(const cudnnTensorStruct& tensor) {
  uint64_t elements = tensor.count > 0 ? 1 : 0;
  for (int i = 0; i < tensor.count; ++i) elements *= static_cast<uint64_t>(tensor.dims[i]);
  return elements;
}

uint64_t SumsBytes(cudnnBatchNormMode_t mode, const cudnnTensorStruct& x) {
  if (mode == CUDNN_BATCHNORM_PER_ACTIVATION || x.count < 2) return 0;
  return Rounded(static_cast<uint64_t>(x.dims[1]) * 2 * sizeof(float));
}

uint64_t MaskBytes(cudnnBatchNormOps_t ops, const cudnnTensorStruct& x) {
  return ops == CUDNN_BATCHNORM_OPS_BN ? 0 : Rounded((Elements(x) + 7) / 8);
}

bool Enough(const void* memory, size_t bytes, uint64_t needed) {
  return needed == 0 || (memory != nullptr && bytes >= needed);
}

}  // namespace
}  // namespace simgpu::dnn

using namespace simgpu::dnn;  // NOLINT: the functions below are of the C interface

extern "C" {

cudnnStatus_t cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t, const cudnnTensorDescriptor_t x,
    const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t y, const cudnnTensorDescriptor_t,
    const cudnnActivationDescriptor_t, size_t* bytes) {
  if (!Valid(handle) || x == nullptr || y == nullptr || bytes == nullptr) return CUDNN_STATUS_BAD_PARAM;
  *bytes = SumsBytes(mode, *x);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetBatchNormalizationBackwardExWorkspaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t, const cudnnTensorDescriptor_t x,
    const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t dy, const cudnnTensorDescriptor_t,
    const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t, const cudnnActivationDescriptor_t, size_t* bytes) {
  if (!Valid(handle) || x == nullptr || dy == nullptr || bytes == nullptr) return CUDNN_STATUS_BAD_PARAM;
  *bytes = SumsBytes(mode, *x);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetBatchNormalizationTrainingExReserveSpaceSize(cudnnHandle_t handle, cudnnBatchNormMode_t,
                                                                   cudnnBatchNormOps_t ops,
                                                                   const cudnnActivationDescriptor_t,
                                                                   const cudnnTensorDescriptor_t x, size_t* bytes) {
  if (!Valid(handle) || x == nullptr || bytes == nullptr) return CUDNN_STATUS_BAD_PARAM;
  *bytes = MaskBytes(ops, *x);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBatchNormalizationForwardTrainingEx(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops, const void*, const void*,
    const cudnnTensorDescriptor_t x_of, const void* x, const cudnnTensorDescriptor_t z_of, const void* z,
    const cudnnTensorDescriptor_t y_of, void* y, const cudnnTensorDescriptor_t channel_of, const void* scale,
    const void* bias, double, void* running_mean, void* running_variance, double, void* saved_mean,
    void* saved_variance, cudnnActivationDescriptor_t, void* workspace, size_t workspace_bytes, void* reserve,
    size_t reserve_bytes) {
  if (!Valid(handle) || x_of == nullptr || y_of == nullptr || channel_of == nullptr) return CUDNN_STATUS_BAD_PARAM;
  if (x == nullptr || y == nullptr || scale == nullptr || bias == nullptr) return CUDNN_STATUS_BAD_PARAM;
  if ((running_mean == nullptr) != (running_variance == nullptr) ||
      (saved_mean == nullptr) != (saved_variance == nullptr)) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  const uint64_t sums = SumsBytes(mode, *x_of), mask = MaskBytes(ops, *x_of), channels = TensorBytes(*channel_of);
  if (!Enough(workspace, workspace_bytes, sums) || !Enough(reserve, reserve_bytes, mask)) return CUDNN_STATUS_BAD_PARAM;
  Work work(handle);
  work.Read(x, TensorBytes(*x_of)).Read(scale, channels).Read(bias, channels);
  if (z != nullptr && z_of != nullptr) work.Read(z, TensorBytes(*z_of));
  work.Write(y, TensorBytes(*y_of)).Write(running_mean, channels).Write(running_variance, channels);
  work.Write(saved_mean, channels).Write(saved_variance, channels).Write(workspace, sums).Write(reserve, mask);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBatchNormalizationForwardInference(cudnnHandle_t handle, cudnnBatchNormMode_t, const void*,
                                                      const void*, const cudnnTensorDescriptor_t x_of, const void* x,
                                                      const cudnnTensorDescriptor_t y_of, void* y,
                                                      const cudnnTensorDescriptor_t channel_of, const void* scale,
                                                      const void* bias, const void* mean, const void* variance,
                                                      double) {
  if (!Valid(handle) || x_of == nullptr || y_of == nullptr || channel_of == nullptr) return CUDNN_STATUS_BAD_PARAM;
  if (x == nullptr || y == nullptr || scale == nullptr || bias == nullptr || mean == nullptr || variance == nullptr) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  const uint64_t channels = TensorBytes(*channel_of);
  Work work(handle);
  work.Read(x, TensorBytes(*x_of))
      .Read(scale, channels)
      .Read(bias, channels)
      .Read(mean, channels)
      .Read(variance, channels);
  work.Write(y, TensorBytes(*y_of));
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBatchNormalizationBackwardEx(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops, const void*, const void*, const void*,
    const void*, const cudnnTensorDescriptor_t x_of, const void* x, const cudnnTensorDescriptor_t y_of, const void* y,
    const cudnnTensorDescriptor_t dy_of, const void* dy, const cudnnTensorDescriptor_t dz_of, void* dz,
    const cudnnTensorDescriptor_t dx_of, void* dx, const cudnnTensorDescriptor_t channel_of, const void* scale,
    const void* bias, void* d_scale, void* d_bias, double, const void* saved_mean, const void* saved_variance,
    cudnnActivationDescriptor_t, void* workspace, size_t workspace_bytes, void* reserve, size_t reserve_bytes) {
  if (!Valid(handle) || x_of == nullptr || dy_of == nullptr || dx_of == nullptr || channel_of == nullptr) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  if (x == nullptr || dy == nullptr || dx == nullptr || scale == nullptr || d_scale == nullptr || d_bias == nullptr ||
      (saved_mean == nullptr) != (saved_variance == nullptr)) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  const uint64_t sums = SumsBytes(mode, *x_of), mask = MaskBytes(ops, *x_of), channels = TensorBytes(*channel_of);
  if (!Enough(workspace, workspace_bytes, sums) || !Enough(reserve, reserve_bytes, mask)) return CUDNN_STATUS_BAD_PARAM;
  Work work(handle);
  work.Read(x, TensorBytes(*x_of)).Read(dy, TensorBytes(*dy_of)).Read(scale, channels);
  work.Read(saved_mean, channels).Read(saved_variance, channels).Read(reserve, mask);
  if (ops != CUDNN_BATCHNORM_OPS_BN) {
    work.Read(bias, channels);
    if (y != nullptr && y_of != nullptr) work.Read(y, TensorBytes(*y_of));
  }
  if (dz != nullptr && dz_of != nullptr) work.Write(dz, TensorBytes(*dz_of));
  work.Write(dx, TensorBytes(*dx_of)).Write(d_scale, channels).Write(d_bias, channels).Write(workspace, sums);
  return CUDNN_STATUS_SUCCESS;
}

}  // extern "C"
