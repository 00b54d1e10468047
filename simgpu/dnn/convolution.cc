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

// The algorithms of each direction, and its type of results.
struct Forward {
  using Algorithm = cudnnConvolutionFwdAlgo_t;
  using Performance = cudnnConvolutionFwdAlgoPerf_t;
  static constexpr Algorithm kWithWorkspace = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
  static constexpr Algorithm kPlain = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM;
};
struct BackwardData {
  using Algorithm = cudnnConvolutionBwdDataAlgo_t;
  using Performance = cudnnConvolutionBwdDataAlgoPerf_t;
  static constexpr Algorithm kWithWorkspace = CUDNN_CONVOLUTION_BWD_DATA_ALGO_1;
  static constexpr Algorithm kPlain = CUDNN_CONVOLUTION_BWD_DATA_ALGO_0;
};
struct BackwardFilter {
  using Algorithm = cudnnConvolutionBwdFilterAlgo_t;
  using Performance = cudnnConvolutionBwdFilterAlgoPerf_t;
  static constexpr Algorithm kWithWorkspace = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1;
  static constexpr Algorithm kPlain = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0;
};

template <typename Direction>
cudnnStatus_t WorkspaceOf(cudnnHandle_t handle, const Shapes& s, typename Direction::Algorithm algorithm,
                          size_t* bytes) {
  if (const cudnnStatus_t status = Check(handle, s); status != CUDNN_STATUS_SUCCESS) return status;
  if (bytes == nullptr) return CUDNN_STATUS_BAD_PARAM;
  if (algorithm != Direction::kWithWorkspace && algorithm != Direction::kPlain) return CUDNN_STATUS_NOT_SUPPORTED;
  int64_t output[CUDNN_DIM_MAX], filter[CUDNN_DIM_MAX];
  std::copy(s.output->dims, s.output->dims + s.output->count, output);
  std::copy(s.filter->dims, s.filter->dims + s.filter->count, filter);
  *bytes = algorithm == Direction::kPlain
               ? 0
               : ConvolutionWorkspace(s.output->count, output, filter, ElementBits(s.output->type));
  return CUDNN_STATUS_SUCCESS;
}

// Returns the algorithms, faster first, without those that need more than `limit` bytes of workspace.
template <typename Direction>
cudnnStatus_t List(cudnnHandle_t handle, const Shapes& s, size_t limit, int requested, int* returned,
                   typename Direction::Performance* results) {
  if (requested < 1 || returned == nullptr || results == nullptr) return CUDNN_STATUS_BAD_PARAM;
  *returned = 0;
  for (const auto algorithm : {Direction::kWithWorkspace, Direction::kPlain}) {
    size_t bytes = 0;
    const cudnnStatus_t status = WorkspaceOf<Direction>(handle, s, algorithm, &bytes);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    if (*returned == requested || bytes > limit) continue;
    auto& result = results[(*returned)++];
    result = {};
    result.algo = algorithm;
    result.status = CUDNN_STATUS_SUCCESS;
    result.time = algorithm == Direction::kPlain ? 2.0F : 1.0F;  // milliseconds: only the order matters
    result.memory = bytes;
    result.determinism = CUDNN_DETERMINISTIC;
    result.mathType = s.convolution->math;
  }
  return CUDNN_STATUS_SUCCESS;
}

// The memory of a convolution: that of the Shapes of the same name. `written` is one of them.
struct Memory {
  const void *input, *filter, *output, *written;
  void* workspace;
  size_t workspace_bytes;
};

template <typename Direction>
cudnnStatus_t Convolve(cudnnHandle_t handle, const Shapes& s, typename Direction::Algorithm algorithm,
                       const Memory& m) {
  size_t needed = 0;
  const cudnnStatus_t status = WorkspaceOf<Direction>(handle, s, algorithm, &needed);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  if (m.input == nullptr || m.filter == nullptr || m.output == nullptr) return CUDNN_STATUS_BAD_PARAM;
  if (m.workspace_bytes < needed || (needed > 0 && m.workspace == nullptr)) return CUDNN_STATUS_BAD_PARAM;
  Work work(handle);
  const auto tell = [&](const void* memory, uint64_t bytes) {
    memory == m.written ? work.Write(memory, bytes) : work.Read(memory, bytes);
  };
  tell(m.input, TensorBytes(*s.input));
  tell(m.filter, TensorBytes(*s.filter));
  tell(m.output, TensorBytes(*s.output));
  work.Write(m.workspace, needed);
  return CUDNN_STATUS_SUCCESS;
}

// Finding means trying: convolves once by the fastest algorithm that the workspace is large enough for.
template <typename Direction>
cudnnStatus_t Find(cudnnHandle_t handle, const Shapes& s, const Memory& m, int requested, int* returned,
                   typename Direction::Performance* results) {
  const cudnnStatus_t status = List<Direction>(handle, s, m.workspace_bytes, requested, returned, results);
  if (status != CUDNN_STATUS_SUCCESS || *returned == 0) return status;
  return Convolve<Direction>(handle, s, results[0].algo, m);
}

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
  return WorkspaceOf<Forward>(handle, {x, y, w, c}, algorithm, bytes);
}
cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(cudnnHandle_t handle, const cudnnFilterDescriptor_t w,
                                                           const cudnnTensorDescriptor_t dy,
                                                           const cudnnConvolutionDescriptor_t c,
                                                           const cudnnTensorDescriptor_t dx,
                                                           cudnnConvolutionBwdDataAlgo_t algorithm, size_t* bytes) {
  return WorkspaceOf<BackwardData>(handle, {dx, dy, w, c}, algorithm, bytes);
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
                                                             const cudnnTensorDescriptor_t dy,
                                                             const cudnnConvolutionDescriptor_t c,
                                                             const cudnnFilterDescriptor_t dw,
                                                             cudnnConvolutionBwdFilterAlgo_t algorithm, size_t* bytes) {
  return WorkspaceOf<BackwardFilter>(handle, {x, dy, dw, c}, algorithm, bytes);
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
                                                     const cudnnFilterDescriptor_t w,
                                                     const cudnnConvolutionDescriptor_t c,
                                                     const cudnnTensorDescriptor_t y, const int requested,
                                                     int* returned, cudnnConvolutionFwdAlgoPerf_t* results) {
  return List<Forward>(handle, {x, y, w, c}, kNoLimit, requested, returned, results);
}
cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(cudnnHandle_t handle, const cudnnFilterDescriptor_t w,
                                                          const cudnnTensorDescriptor_t dy,
                                                          const cudnnConvolutionDescriptor_t c,
                                                          const cudnnTensorDescriptor_t dx, const int requested,
                                                          int* returned, cudnnConvolutionBwdDataAlgoPerf_t* results) {
  return List<BackwardData>(handle, {dx, dy, w, c}, kNoLimit, requested, returned, results);
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
                                                            const cudnnTensorDescriptor_t dy,
                                                            const cudnnConvolutionDescriptor_t c,
                                                            const cudnnFilterDescriptor_t dw, const int requested,
                                                            int* returned,
                                                            cudnnConvolutionBwdFilterAlgoPerf_t* results) {
  return List<BackwardFilter>(handle, {x, dy, dw, c}, kNoLimit, requested, returned, results);
}

cudnnStatus_t cudnnFindConvolutionForwardAlgorithmEx(cudnnHandle_t handle, const cudnnTensorDescriptor_t x_of,
                                                     const void* x, const cudnnFilterDescriptor_t w_of, const void* w,
                                                     const cudnnConvolutionDescriptor_t c,
                                                     const cudnnTensorDescriptor_t y_of, void* y, const int requested,
                                                     int* returned, cudnnConvolutionFwdAlgoPerf_t* results,
                                                     void* workspace, size_t bytes) {
  return Find<Forward>(handle, {x_of, y_of, w_of, c}, {x, w, y, y, workspace, bytes}, requested, returned, results);
}
cudnnStatus_t cudnnFindConvolutionBackwardDataAlgorithmEx(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t w_of, const void* w, const cudnnTensorDescriptor_t dy_of,
    const void* dy, const cudnnConvolutionDescriptor_t c, const cudnnTensorDescriptor_t dx_of, void* dx,
    const int requested, int* returned, cudnnConvolutionBwdDataAlgoPerf_t* results, void* workspace, size_t bytes) {
  return Find<BackwardData>(handle, {dx_of, dy_of, w_of, c}, {dx, w, dy, dx, workspace, bytes}, requested, returned,
                            results);
}
cudnnStatus_t cudnnFindConvolutionBackwardFilterAlgorithmEx(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x_of, const void* x, const cudnnTensorDescriptor_t dy_of,
    const void* dy, const cudnnConvolutionDescriptor_t c, const cudnnFilterDescriptor_t dw_of, void* dw,
    const int requested, int* returned, cudnnConvolutionBwdFilterAlgoPerf_t* results, void* workspace, size_t bytes) {
  return Find<BackwardFilter>(handle, {x_of, dy_of, dw_of, c}, {x, dw, dy, dw, workspace, bytes}, requested, returned,
                              results);
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void*, const cudnnTensorDescriptor_t x_of,
                                      const void* x, const cudnnFilterDescriptor_t w_of, const void* w,
                                      const cudnnConvolutionDescriptor_t c, cudnnConvolutionFwdAlgo_t algorithm,
                                      void* workspace, size_t bytes, const void*, const cudnnTensorDescriptor_t y_of,
                                      void* y) {
  return Convolve<Forward>(handle, {x_of, y_of, w_of, c}, algorithm, {x, w, y, y, workspace, bytes});
}
cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void*, const cudnnFilterDescriptor_t w_of,
                                           const void* w, const cudnnTensorDescriptor_t dy_of, const void* dy,
                                           const cudnnConvolutionDescriptor_t c,
                                           cudnnConvolutionBwdDataAlgo_t algorithm, void* workspace, size_t bytes,
                                           const void*, const cudnnTensorDescriptor_t dx_of, void* dx) {
  return Convolve<BackwardData>(handle, {dx_of, dy_of, w_of, c}, algorithm, {dx, w, dy, dx, workspace, bytes});
}
cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void*, const cudnnTensorDescriptor_t x_of,
                                             const void* x, const cudnnTensorDescriptor_t dy_of, const void* dy,
                                             const cudnnConvolutionDescriptor_t c,
                                             cudnnConvolutionBwdFilterAlgo_t algorithm, void* workspace, size_t bytes,
                                             const void*, const cudnnFilterDescriptor_t dw_of, void* dw) {
  return Convolve<BackwardFilter>(handle, {x_of, dy_of, dw_of, c}, algorithm, {x, dw, dy, dw, workspace, bytes});
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
      Convolve<Forward>(handle, {x_of, y_of, w_of, c}, algorithm, {x, w, y, y, workspace, bytes});
  if (status != CUDNN_STATUS_SUCCESS) return status;
  simgpu::blas::Use(handle->stream, z, TensorBytes(*z_of), false);
  simgpu::blas::Use(handle->stream, bias, TensorBytes(*bias_of), false);
  return CUDNN_STATUS_SUCCESS;
}

}  // extern "C"
