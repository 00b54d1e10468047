// Convolutions by the older interface. Each direction has two algorithms, one with a workspace (see workspace.h), one
// without.
#include <algorithm>

#include "simgpu/dnn/dnn.h"
#include "simgpu/dnn/workspace.h"

struct cudnnConvolutionStruct {
  int count = 0;  // of spatial dimensions; 0: never set
  int group_count = 1;
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
};

namespace simgpu::dnn {
namespace {

// The operands of a convolution: in any direction one image tensor on each side, and the filters. All three are set.
struct Shapes {
  cudnnTensorDescriptor_t input, output;
  cudnnFilterDescriptor_t filter;
  cudnnConvolutionDescriptor_t convolution;
};

cudnnStatus_t Check(cudnnHandle_t handle, const Shapes& s) {
  if (!Valid(handle) || s.input == nullptr || s.output == nullptr || s.filter == nullptr || s.convolution == nullptr) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  const int count = s.convolution->count + 2;
  if (s.convolution->count == 0 || s.input->count != count || s.output->count != count || s.filter->count != count) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  const bool fits = s.input->dims[0] == s.output->dims[0] && s.output->dims[1] == s.filter->dims[0] &&
                    s.input->dims[1] == s.filter->dims[1] * s.convolution->group_count;
  return fits ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

// `with`, `without`: the two algorithms of this direction.
template <typename Algorithm>
cudnnStatus_t WorkspaceOf(cudnnHandle_t handle, const Shapes& s, Algorithm algorithm, Algorithm with, Algorithm without,
                          size_t* bytes) {
  if (const cudnnStatus_t status = Check(handle, s); status != CUDNN_STATUS_SUCCESS) return status;
  if (bytes == nullptr) return CUDNN_STATUS_BAD_PARAM;
  if (algorithm != with && algorithm != without) return CUDNN_STATUS_NOT_SUPPORTED;
  int64_t output[CUDNN_DIM_MAX], filter[CUDNN_DIM_MAX];
  std::copy(s.output->dims, s.output->dims + s.output->count, output);
  std::copy(s.filter->dims, s.filter->dims + s.filter->count, filter);
  *bytes = algorithm == with ? ConvolutionWorkspace(s.output->count, output, filter, ElementBits(s.output->type)) : 0;
  return CUDNN_STATUS_SUCCESS;
}

// Returns the algorithms, faster first, without those that need more than `limit` bytes of workspace.
template <typename Performance, typename Algorithm>
cudnnStatus_t List(cudnnHandle_t handle, const Shapes& s, Algorithm with, Algorithm without, size_t limit,
                   int requested, int* returned, Performance* results) {
  if (requested < 1 || returned == nullptr || results == nullptr) return CUDNN_STATUS_BAD_PARAM;
  *returned = 0;
  for (const Algorithm algorithm : {with, without}) {
    size_t bytes = 0;
    const cudnnStatus_t status = WorkspaceOf(handle, s, algorithm, with, without, &bytes);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    if (*returned == requested || bytes > limit) continue;
    Performance& result = results[(*returned)++];
    result = {};
    result.algo = algorithm;
    result.status = CUDNN_STATUS_SUCCESS;
    result.time = algorithm == with ? 1.0F : 2.0F;  // milliseconds: only the order matters
    result.memory = bytes;
    result.determinism = CUDNN_DETERMINISTIC;
    result.mathType = s.convolution->math;
  }
  return CUDNN_STATUS_SUCCESS;
}

// `input`, `filter`, `output` as in Shapes; `written` is one of them.
template <typename Algorithm>
cudnnStatus_t Convolve(cudnnHandle_t handle, const Shapes& s, Algorithm algorithm, Algorithm with, Algorithm without,
                       const void* input, const void* filter, const void* output, const void* written, void* workspace,
                       size_t workspace_bytes) {
  size_t needed = 0;
  const cudnnStatus_t status = WorkspaceOf(handle, s, algorithm, with, without, &needed);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  if (input == nullptr || filter == nullptr || output == nullptr) return CUDNN_STATUS_BAD_PARAM;
  if (workspace_bytes < needed || (needed > 0 && workspace == nullptr)) return CUDNN_STATUS_BAD_PARAM;
  Work work(handle);
  const auto tell = [&](const void* memory, uint64_t bytes) {
    memory == written ? work.Write(memory, bytes) : work.Read(memory, bytes);
  };
  tell(input, TensorBytes(*s.input));
  tell(filter, TensorBytes(*s.filter));
  tell(output, TensorBytes(*s.output));
  work.Write(workspace, needed);
  return CUDNN_STATUS_SUCCESS;
}

constexpr auto kForward = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
constexpr auto kForwardPlain = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM;
constexpr auto kData = CUDNN_CONVOLUTION_BWD_DATA_ALGO_1;
constexpr auto kDataPlain = CUDNN_CONVOLUTION_BWD_DATA_ALGO_0;
constexpr auto kFilter = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1;
constexpr auto kFilterPlain = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0;
constexpr size_t kNoLimit = ~size_t{0};

}  // namespace
}  // namespace simgpu::dnn

using namespace simgpu::dnn;  // NOLINT: the functions below are of the C interface

extern "C" {

SIMGPU_DNN_DESCRIPTOR(ConvolutionDescriptor, cudnnConvolutionDescriptor_t)

cudnnStatus_t cudnnSetConvolutionNdDescriptor(cudnnConvolutionDescriptor_t convolution, int count, const int paddings[],
                                              const int strides[], const int dilations[], cudnnConvolutionMode_t,
                                              cudnnDataType_t) {
  if (convolution == nullptr || paddings == nullptr || strides == nullptr || dilations == nullptr || count < 1) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  if (count > CUDNN_DIM_MAX - 2) return CUDNN_STATUS_NOT_SUPPORTED;
  for (int i = 0; i < count; ++i) {
    if (paddings[i] < 0 || strides[i] < 1 || dilations[i] < 1) return CUDNN_STATUS_BAD_PARAM;
  }
  convolution->count = count;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t convolution, int groups) {
  if (convolution == nullptr || groups < 1) return CUDNN_STATUS_BAD_PARAM;
  convolution->group_count = groups;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t convolution, cudnnMathType_t math) {
  if (convolution == nullptr) return CUDNN_STATUS_BAD_PARAM;
  convolution->math = math;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
                                                      const cudnnFilterDescriptor_t w,
                                                      const cudnnConvolutionDescriptor_t c,
                                                      const cudnnTensorDescriptor_t y,
                                                      cudnnConvolutionFwdAlgo_t algorithm, size_t* bytes) {
  return WorkspaceOf(handle, {x, y, w, c}, algorithm, kForward, kForwardPlain, bytes);
}
cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(cudnnHandle_t handle, const cudnnFilterDescriptor_t w,
                                                           const cudnnTensorDescriptor_t dy,
                                                           const cudnnConvolutionDescriptor_t c,
                                                           const cudnnTensorDescriptor_t dx,
                                                           cudnnConvolutionBwdDataAlgo_t algorithm, size_t* bytes) {
  return WorkspaceOf(handle, {dx, dy, w, c}, algorithm, kData, kDataPlain, bytes);
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
                                                             const cudnnTensorDescriptor_t dy,
                                                             const cudnnConvolutionDescriptor_t c,
                                                             const cudnnFilterDescriptor_t dw,
                                                             cudnnConvolutionBwdFilterAlgo_t algorithm, size_t* bytes) {
  return WorkspaceOf(handle, {x, dy, dw, c}, algorithm, kFilter, kFilterPlain, bytes);
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
                                                     const cudnnFilterDescriptor_t w,
                                                     const cudnnConvolutionDescriptor_t c,
                                                     const cudnnTensorDescriptor_t y, const int requested,
                                                     int* returned, cudnnConvolutionFwdAlgoPerf_t* results) {
  return List(handle, {x, y, w, c}, kForward, kForwardPlain, kNoLimit, requested, returned, results);
}
cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(cudnnHandle_t handle, const cudnnFilterDescriptor_t w,
                                                          const cudnnTensorDescriptor_t dy,
                                                          const cudnnConvolutionDescriptor_t c,
                                                          const cudnnTensorDescriptor_t dx, const int requested,
                                                          int* returned, cudnnConvolutionBwdDataAlgoPerf_t* results) {
  return List(handle, {dx, dy, w, c}, kData, kDataPlain, kNoLimit, requested, returned, results);
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
                                                            const cudnnTensorDescriptor_t dy,
                                                            const cudnnConvolutionDescriptor_t c,
                                                            const cudnnFilterDescriptor_t dw, const int requested,
                                                            int* returned,
                                                            cudnnConvolutionBwdFilterAlgoPerf_t* results) {
  return List(handle, {x, dy, dw, c}, kFilter, kFilterPlain, kNoLimit, requested, returned, results);
}

// Finding means trying: uses the tensors once, with the given workspace.
cudnnStatus_t cudnnFindConvolutionForwardAlgorithmEx(cudnnHandle_t handle, const cudnnTensorDescriptor_t x_of,
                                                     const void* x, const cudnnFilterDescriptor_t w_of, const void* w,
                                                     const cudnnConvolutionDescriptor_t c,
                                                     const cudnnTensorDescriptor_t y_of, void* y, const int requested,
                                                     int* returned, cudnnConvolutionFwdAlgoPerf_t* results,
                                                     void* workspace, size_t bytes) {
  const Shapes shapes{x_of, y_of, w_of, c};
  const cudnnStatus_t status = List(handle, shapes, kForward, kForwardPlain, bytes, requested, returned, results);
  if (status != CUDNN_STATUS_SUCCESS || *returned == 0) return status;
  return Convolve(handle, shapes, results[0].algo, kForward, kForwardPlain, x, w, y, y, workspace, bytes);
}
cudnnStatus_t cudnnFindConvolutionBackwardDataAlgorithmEx(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t w_of, const void* w, const cudnnTensorDescriptor_t dy_of,
    const void* dy, const cudnnConvolutionDescriptor_t c, const cudnnTensorDescriptor_t dx_of, void* dx,
    const int requested, int* returned, cudnnConvolutionBwdDataAlgoPerf_t* results, void* workspace, size_t bytes) {
  const Shapes shapes{dx_of, dy_of, w_of, c};
  const cudnnStatus_t status = List(handle, shapes, kData, kDataPlain, bytes, requested, returned, results);
  if (status != CUDNN_STATUS_SUCCESS || *returned == 0) return status;
  return Convolve(handle, shapes, results[0].algo, kData, kDataPlain, dx, w, dy, dx, workspace, bytes);
}
cudnnStatus_t cudnnFindConvolutionBackwardFilterAlgorithmEx(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x_of, const void* x, const cudnnTensorDescriptor_t dy_of,
    const void* dy, const cudnnConvolutionDescriptor_t c, const cudnnFilterDescriptor_t dw_of, void* dw,
    const int requested, int* returned, cudnnConvolutionBwdFilterAlgoPerf_t* results, void* workspace, size_t bytes) {
  const Shapes shapes{x_of, dy_of, dw_of, c};
  const cudnnStatus_t status = List(handle, shapes, kFilter, kFilterPlain, bytes, requested, returned, results);
  if (status != CUDNN_STATUS_SUCCESS || *returned == 0) return status;
  return Convolve(handle, shapes, results[0].algo, kFilter, kFilterPlain, x, dw, dy, dw, workspace, bytes);
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void*, const cudnnTensorDescriptor_t x_of,
                                      const void* x, const cudnnFilterDescriptor_t w_of, const void* w,
                                      const cudnnConvolutionDescriptor_t c, cudnnConvolutionFwdAlgo_t algorithm,
                                      void* workspace, size_t bytes, const void*, const cudnnTensorDescriptor_t y_of,
                                      void* y) {
  return Convolve(handle, {x_of, y_of, w_of, c}, algorithm, kForward, kForwardPlain, x, w, y, y, workspace, bytes);
}
cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void*, const cudnnFilterDescriptor_t w_of,
                                           const void* w, const cudnnTensorDescriptor_t dy_of, const void* dy,
                                           const cudnnConvolutionDescriptor_t c,
                                           cudnnConvolutionBwdDataAlgo_t algorithm, void* workspace, size_t bytes,
                                           const void*, const cudnnTensorDescriptor_t dx_of, void* dx) {
  return Convolve(handle, {dx_of, dy_of, w_of, c}, algorithm, kData, kDataPlain, dx, w, dy, dx, workspace, bytes);
}
cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void*, const cudnnTensorDescriptor_t x_of,
                                             const void* x, const cudnnTensorDescriptor_t dy_of, const void* dy,
                                             const cudnnConvolutionDescriptor_t c,
                                             cudnnConvolutionBwdFilterAlgo_t algorithm, void* workspace, size_t bytes,
                                             const void*, const cudnnFilterDescriptor_t dw_of, void* dw) {
  return Convolve(handle, {x_of, dy_of, dw_of, c}, algorithm, kFilter, kFilterPlain, x, dw, dy, dw, workspace, bytes);
}
// y ← activation(alpha1 convolution(x, w) + alpha2 z + bias)
cudnnStatus_t cudnnConvolutionBiasActivationForward(
    cudnnHandle_t handle, const void*, const cudnnTensorDescriptor_t x_of, const void* x,
    const cudnnFilterDescriptor_t w_of, const void* w, const cudnnConvolutionDescriptor_t c,
    cudnnConvolutionFwdAlgo_t algorithm, void* workspace, size_t bytes, const void*, const cudnnTensorDescriptor_t z_of,
    const void* z, const cudnnTensorDescriptor_t bias_of, const void* bias,
    const cudnnActivationDescriptor_t activation, const cudnnTensorDescriptor_t y_of, void* y) {
  if (z_of == nullptr || bias_of == nullptr || bias == nullptr || activation == nullptr) return CUDNN_STATUS_BAD_PARAM;
  const cudnnStatus_t status =
      Convolve(handle, {x_of, y_of, w_of, c}, algorithm, kForward, kForwardPlain, x, w, y, y, workspace, bytes);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  simgpu::blas::Use(handle->stream, z, TensorBytes(*z_of), false);
  simgpu::blas::Use(handle->stream, bias, TensorBytes(*bias_of), false);
  return CUDNN_STATUS_SUCCESS;
}

}  // extern "C"
