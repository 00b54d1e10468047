// The cuDNN shim's older interface: convolutions, batch normalisation, recurrent networks and the rest.
#include <array>
#include <vector>

#include "tests/simgpu/dnn_cases.h"

namespace simgpu_test {
namespace {

const float kOne = 1, kNone = 0;

cudnnTensorDescriptor_t Tensor(int n, int c, int h, int w) {
  cudnnTensorDescriptor_t tensor = nullptr;
  SUCCEED(cudnnCreateTensorDescriptor(&tensor));
  SUCCEED(cudnnSetTensor4dDescriptor(tensor, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, n, c, h, w));
  return tensor;
}

// Block i begins at i * 16 KiB.
uint64_t Place(int i) { return static_cast<uint64_t>(i) * 16384; }
void GiveAll(const std::vector<size_t>& sizes) {
  for (size_t i = 0; i < sizes.size(); ++i) Give(arena + Place(static_cast<int>(i)), sizes[i]);
}

// --- Convolutions: as in dnn_cases.cc -----------------------------------------------------------------------------------

struct Shapes {
  cudnnTensorDescriptor_t x = Tensor(2, 3, 8, 8), y = Tensor(2, 4, 6, 6);
  cudnnFilterDescriptor_t w = nullptr;
  cudnnConvolutionDescriptor_t convolution = nullptr;
  Shapes() {
    SUCCEED(cudnnCreateFilterDescriptor(&w));
    SUCCEED(cudnnSetFilter4dDescriptor(w, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 4, 3, 3, 3));
    SUCCEED(cudnnCreateConvolutionDescriptor(&convolution));
    const int none[] = {0, 0}, ones[] = {1, 1};
    SUCCEED(cudnnSetConvolutionNdDescriptor(convolution, 2, none, ones, ones, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
  }
};
constexpr size_t kBytesX = 2 * 3 * 8 * 8 * 4, kBytesW = 4 * 3 * 3 * 3 * 4, kBytesY = 2 * 4 * 6 * 6 * 4, kWorkspace = 4096;

void Forward(std::vector<size_t> sizes) {
  GiveAll(sizes);
  const Shapes s;
  cudnnHandle_t handle = NewDnnHandle(s1);
  std::array<cudnnConvolutionFwdAlgoPerf_t, 8> results;
  int count = 0;
  SUCCEED(cudnnGetConvolutionForwardAlgorithm_v7(handle, s.x, s.w, s.convolution, s.y, 8, &count, results.data()));
  EXPECT(count == 2);
  EXPECT(results[0].memory == kWorkspace);
  EXPECT(results[1].memory == 0);
  SUCCEED(cudnnConvolutionForward(handle, &kOne, s.x, At(Place(0)), s.w, At(Place(1)), s.convolution, results[0].algo,
                                  At(Place(3)), kWorkspace, &kNone, s.y, At(Place(2))));
}
CASE(LegacyForwardClean) { Forward({kBytesX, kBytesW, kBytesY, kWorkspace}); }
CASE(LegacyForwardBeyondY) { Forward({kBytesX, kBytesW, kBytesY - 4, kWorkspace}); }
CASE(LegacyForwardBeyondWorkspace) { Forward({kBytesX, kBytesW, kBytesY, kWorkspace - 256}); }

CASE(LegacyBackward) {
  GiveAll({kBytesX, kBytesW, kBytesY});
  const Shapes s;
  cudnnHandle_t handle = NewDnnHandle(s1);
  SUCCEED(cudnnConvolutionBackwardData(handle, &kOne, s.w, At(Place(1)), s.y, At(Place(2)), s.convolution,
                                       CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, nullptr, 0, &kNone, s.x, At(Place(0))));
  SUCCEED(cudnnConvolutionBackwardFilter(handle, &kOne, s.x, At(Place(0)), s.y, At(Place(2)), s.convolution,
                                         CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, nullptr, 0, &kNone, s.w, At(Place(1))));
}
CASE(LegacyFindWithinWorkspace) {  // too little is lent for the faster one
  GiveAll({kBytesX, kBytesW, kBytesY, 1024});
  const Shapes s;
  std::array<cudnnConvolutionFwdAlgoPerf_t, 8> results;
  int count = 0;
  SUCCEED(cudnnFindConvolutionForwardAlgorithmEx(NewDnnHandle(s1), s.x, At(Place(0)), s.w, At(Place(1)), s.convolution, s.y,
                                                 At(Place(2)), 8, &count, results.data(), At(Place(3)), 1024));
  EXPECT(count == 1);
  EXPECT(results[0].algo == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM);
}
CASE(LegacyMisuse) {
  const Shapes s;
  cudnnHandle_t handle = NewDnnHandle(s1);
  size_t bytes = 0;
  ANSWERS(CUDNN_STATUS_NOT_SUPPORTED, cudnnGetConvolutionForwardWorkspaceSize(handle, s.x, s.w, s.convolution, s.y,
                                                                              CUDNN_CONVOLUTION_FWD_ALGO_FFT, &bytes));
  ANSWERS(CUDNN_STATUS_BAD_PARAM,  // three channels are not four
          cudnnGetConvolutionForwardWorkspaceSize(handle, s.y, s.w, s.convolution, s.y,
                                                  CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, &bytes));
  ANSWERS(CUDNN_STATUS_BAD_PARAM,  // the workspace is too small
          cudnnConvolutionForward(handle, &kOne, s.x, At(0), s.w, At(0), s.convolution,
                                  CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, At(0), kWorkspace - 1, &kNone, s.y, At(0)));
  ANSWERS(CUDNN_STATUS_BAD_PARAM, cudnnSetTensor4dDescriptor(nullptr, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1, 1, 1));
  ANSWERS(CUDNN_STATUS_NOT_SUPPORTED, cudnnSoftmaxForward(handle, CUDNN_SOFTMAX_FAST, CUDNN_SOFTMAX_MODE_CHANNEL, &kOne, s.x,
                                                          At(0), &kNone, s.x, At(0)));  // a stub
  SUCCEED(cudnnDestroy(handle));
}
CASE(Version) {
  EXPECT(cudnnGetVersion() / 10000 == 9);
  EXPECT(cudnnGetVersion() >= CUDNN_VERSION);
  int major = 0, minor = 0;
  SUCCEED(cudnnGetProperty(MAJOR_VERSION, &major));
  SUCCEED(cudnnGetProperty(MINOR_VERSION, &minor));
  EXPECT(static_cast<size_t>(major * 10000 + minor * 100) == cudnnGetVersion() / 100 * 100);
}

// --- Batch normalisation: x, y of 2 x 16 x 5 x 5, 16 channels ---------------------------------------------------------

constexpr size_t kImages = 2 * 16 * 5 * 5 * 4, kChannels = 16 * 4, kSums = 256;

// Blocks: x, y, scale, bias, running mean, running variance, saved mean, saved variance, workspace, reserve.
void BatchNormForward(const std::vector<size_t>& sizes, cudnnBatchNormOps_t ops, size_t reserve) {
  GiveAll(sizes);
  const cudnnTensorDescriptor_t x = Tensor(2, 16, 5, 5), channel = Tensor(1, 16, 1, 1);
  cudnnHandle_t handle = NewDnnHandle(s1);
  size_t workspace_bytes = 0, reserve_bytes = 0;
  SUCCEED(cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(handle, CUDNN_BATCHNORM_SPATIAL_PERSISTENT, ops, x, nullptr, x,
                                                                   channel, nullptr, &workspace_bytes));
  SUCCEED(cudnnGetBatchNormalizationTrainingExReserveSpaceSize(handle, CUDNN_BATCHNORM_SPATIAL_PERSISTENT, ops, nullptr, x,
                                                               &reserve_bytes));
  EXPECT(workspace_bytes == kSums);
  EXPECT(reserve_bytes == reserve);
  SUCCEED(cudnnBatchNormalizationForwardTrainingEx(
      handle, CUDNN_BATCHNORM_SPATIAL_PERSISTENT, ops, &kOne, &kNone, x, At(Place(0)), nullptr, nullptr, x, At(Place(1)), channel,
      At(Place(2)), At(Place(3)), 0.1, At(Place(4)), At(Place(5)), 1e-5, At(Place(6)), At(Place(7)), nullptr, At(Place(8)),
      workspace_bytes, At(Place(9)), reserve_bytes));
}
const std::vector<size_t> kNormBlocks = {kImages,   kImages,   kChannels, kChannels, kChannels,
                                         kChannels, kChannels, kChannels, kSums,     256};
std::vector<size_t> ButSmaller(std::vector<size_t> sizes, size_t block) {
  sizes[block] -= 4;
  return sizes;
}
CASE(BatchNormClean) { BatchNormForward(kNormBlocks, CUDNN_BATCHNORM_OPS_BN, 0); }
CASE(BatchNormWithReserve) { BatchNormForward(kNormBlocks, CUDNN_BATCHNORM_OPS_BN_ACTIVATION, 256); }
CASE(BatchNormBeyondX) { BatchNormForward(ButSmaller(kNormBlocks, 0), CUDNN_BATCHNORM_OPS_BN, 0); }
CASE(BatchNormBeyondRunning) { BatchNormForward(ButSmaller(kNormBlocks, 5), CUDNN_BATCHNORM_OPS_BN, 0); }
CASE(BatchNormBeyondSaved) { BatchNormForward(ButSmaller(kNormBlocks, 7), CUDNN_BATCHNORM_OPS_BN, 0); }
CASE(BatchNormBeyondWorkspace) { BatchNormForward(ButSmaller(kNormBlocks, 8), CUDNN_BATCHNORM_OPS_BN, 0); }
CASE(BatchNormBeyondReserve) { BatchNormForward(ButSmaller(kNormBlocks, 9), CUDNN_BATCHNORM_OPS_BN_ACTIVATION, 256); }

// Blocks: x, dy, dx, scale, d_scale, d_bias, saved mean, saved variance, workspace.
void BatchNormBackward(const std::vector<size_t>& sizes) {
  GiveAll(sizes);
  const cudnnTensorDescriptor_t x = Tensor(2, 16, 5, 5), channel = Tensor(1, 16, 1, 1);
  SUCCEED(cudnnBatchNormalizationBackwardEx(
      NewDnnHandle(s1), CUDNN_BATCHNORM_SPATIAL_PERSISTENT, CUDNN_BATCHNORM_OPS_BN, &kOne, &kNone, &kOne, &kNone, x, At(Place(0)),
      nullptr, nullptr, x, At(Place(1)), nullptr, nullptr, x, At(Place(2)), channel, At(Place(3)), nullptr, At(Place(4)),
      At(Place(5)), 1e-5, At(Place(6)), At(Place(7)), nullptr, At(Place(8)), kSums, nullptr, 0));
}
const std::vector<size_t> kNormBackBlocks = {kImages,   kImages,   kImages,   kChannels, kChannels,
                                             kChannels, kChannels, kChannels, kSums};
CASE(BatchNormBackwardClean) { BatchNormBackward(kNormBackBlocks); }
CASE(BatchNormBackwardBeyondDx) { BatchNormBackward(ButSmaller(kNormBackBlocks, 2)); }
CASE(BatchNormBackwardBeyondDBias) { BatchNormBackward(ButSmaller(kNormBackBlocks, 5)); }
CASE(BatchNormInference) {
  GiveAll({kImages, kImages, kChannels, kChannels, kChannels, kChannels - 4});
  const cudnnTensorDescriptor_t x = Tensor(2, 16, 5, 5), channel = Tensor(1, 16, 1, 1);
  SUCCEED(cudnnBatchNormalizationForwardInference(NewDnnHandle(s1), CUDNN_BATCHNORM_SPATIAL, &kOne, &kNone, x, At(Place(0)), x,
                                                  At(Place(1)), channel, At(Place(2)), At(Place(3)), At(Place(4)), At(Place(5)),
                                                  1e-5));
}

// --- Recurrent networks: an LSTM of 2 layers in both directions, 8 inputs, 16 hidden values, 5 steps, 3 sequences -----

struct Network {
  cudnnHandle_t handle = NewDnnHandle(s1);
  cudnnRNNDescriptor_t rnn = nullptr;
  cudnnRNNDataDescriptor_t x = nullptr, y = nullptr;
  cudnnTensorDescriptor_t hidden = nullptr;
  size_t weights = 0, workspace = 0, reserve = 0;

  explicit Network(cudnnRNNDataLayout_t layout = CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED) {
    SUCCEED(cudnnCreateRNNDescriptor(&rnn));
    SUCCEED(cudnnSetRNNDescriptor_v8(rnn, CUDNN_RNN_ALGO_STANDARD, CUDNN_LSTM, CUDNN_RNN_DOUBLE_BIAS, CUDNN_BIDIRECTIONAL,
                                     CUDNN_LINEAR_INPUT, CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, CUDNN_DEFAULT_MATH, 8, 16, 16, 2,
                                     nullptr, 0));
    const int lengths[] = {5, 3, 1};
    SUCCEED(cudnnCreateRNNDataDescriptor(&x));
    SUCCEED(cudnnSetRNNDataDescriptor(x, CUDNN_DATA_FLOAT, layout, 5, 3, 8, lengths, nullptr));
    SUCCEED(cudnnCreateRNNDataDescriptor(&y));
    SUCCEED(cudnnSetRNNDataDescriptor(y, CUDNN_DATA_FLOAT, layout, 5, 3, 32, lengths, nullptr));
    const int dims[] = {4, 3, 16}, strides[] = {48, 16, 1};
    SUCCEED(cudnnCreateTensorDescriptor(&hidden));
    SUCCEED(cudnnSetTensorNdDescriptor(hidden, CUDNN_DATA_FLOAT, 3, dims, strides));
    SUCCEED(cudnnGetRNNWeightSpaceSize(handle, rnn, &weights));
    SUCCEED(cudnnGetRNNTempSpaceSizes(handle, rnn, CUDNN_FWD_MODE_TRAINING, x, &workspace, &reserve));
  }
};

constexpr size_t kWeights = (2 * 4 * 16 * (8 + 16) + 2 * 4 * 16 * (32 + 16) + 4 * 2 * 4 * 16) * 4;
constexpr size_t kSequences = 5 * 3 * 8 * 4, kOutputs = 5 * 3 * 32 * 4, kHidden = 4 * 3 * 16 * 4;
// x, y, hx, hy, cx, cy, the lengths; at 128 KiB the weights, at 256 KiB the workspace, at 512 KiB the reserve.
constexpr uint64_t kAtWeights = 128 << 10, kAtWorkspace = 256 << 10, kAtReserve = 512 << 10;
const std::vector<size_t> kNetworkBlocks = {kSequences, kOutputs, kHidden, kHidden, kHidden, kHidden, 3 * 4};

void RunForward(const Network& n, const std::vector<size_t>& sizes, size_t weights, size_t reserve) {
  GiveAll(sizes);
  Give(arena + kAtWeights, weights);
  Give(arena + kAtWorkspace, n.workspace);
  Give(arena + kAtReserve, reserve);
  SUCCEED(cudnnRNNForward(n.handle, n.rnn, CUDNN_FWD_MODE_TRAINING, static_cast<const int32_t*>(At(Place(6))), n.x, At(Place(0)),
                          n.y, At(Place(1)), n.hidden, At(Place(2)), At(Place(3)), n.hidden, At(Place(4)), At(Place(5)), n.weights,
                          At(kAtWeights), n.workspace, At(kAtWorkspace), n.reserve, At(kAtReserve)));
}
CASE(NetworkSizes) {
  const Network n;
  EXPECT(n.weights == kWeights);
  EXPECT(n.workspace == 5 * 3 * (2 * 4 * 16) * 4);
  EXPECT(n.reserve == 5 * 3 * (2 * 2 * 5 * 16) * 4);
  size_t reserve = 1;
  SUCCEED(cudnnGetRNNTempSpaceSizes(n.handle, n.rnn, CUDNN_FWD_MODE_INFERENCE, n.x, nullptr, &reserve));
  EXPECT(reserve == 0);
}
// The parts of the weight space lie one behind another, without gap or overlap.
CASE(NetworkParts) {
  const Network n;
  cudnnTensorDescriptor_t matrix = nullptr, bias = nullptr;
  SUCCEED(cudnnCreateTensorDescriptor(&matrix));
  SUCCEED(cudnnCreateTensorDescriptor(&bias));
  const char* base = static_cast<const char*>(At(0));
  std::vector<bool> taken(kWeights / 4);
  for (int layer = 0; layer < 4; ++layer) {
    for (int id = 0; id < 8; ++id) {
      void *at_matrix = nullptr, *at_bias = nullptr;
      SUCCEED(cudnnGetRNNWeightParams(n.handle, n.rnn, layer, n.weights, base, id, matrix, &at_matrix, bias, &at_bias));
      for (const auto& [tensor, address] : {std::pair{matrix, at_matrix}, std::pair{bias, at_bias}}) {
        cudnnDataType_t type;
        int count = 0, dims[3], strides[3];
        SUCCEED(cudnnGetTensorNdDescriptor(tensor, 3, &type, &count, dims, strides));
        EXPECT(count == 3 && dims[0] == 1 && dims[1] == 16);
        const size_t first = static_cast<size_t>(static_cast<const char*>(address) - base) / 4;
        for (size_t i = first; i < first + static_cast<size_t>(dims[1] * dims[2]); ++i) {
          EXPECT(i < taken.size() && !taken[i]);
          taken[i] = true;
        }
      }
    }
  }
  for (const bool one : taken) EXPECT(one);
  void *at_matrix = At(0), *at_bias = At(0);
  SUCCEED(cudnnGetRNNWeightParams(n.handle, n.rnn, 0, n.weights, base, 8, matrix, &at_matrix, bias, &at_bias));
  EXPECT(at_matrix == nullptr && at_bias == nullptr);  // no projection
  ANSWERS(CUDNN_STATUS_BAD_PARAM,
          cudnnGetRNNWeightParams(n.handle, n.rnn, 4, n.weights, base, 0, matrix, &at_matrix, bias, &at_bias));
}
CASE(NetworkForward) {
  const Network n;
  RunForward(n, kNetworkBlocks, kWeights, n.reserve);
}
CASE(NetworkBeyondX) {
  const Network n;
  RunForward(n, ButSmaller(kNetworkBlocks, 0), kWeights, n.reserve);
}
CASE(NetworkBeyondState) {
  const Network n;
  RunForward(n, ButSmaller(kNetworkBlocks, 5), kWeights, n.reserve);
}
CASE(NetworkBeyondWeights) {
  const Network n;
  RunForward(n, kNetworkBlocks, kWeights - 4, n.reserve);
}
CASE(NetworkBeyondReserve) {
  const Network n;
  RunForward(n, kNetworkBlocks, kWeights, n.reserve - 4);
}
CASE(NetworkPacked) {  // nine steps together instead of fifteen
  const Network n(CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED);
  std::vector<size_t> sizes = kNetworkBlocks;
  sizes[0] = 9 * 8 * 4;
  sizes[1] = 9 * 32 * 4;
  RunForward(n, sizes, kWeights, n.reserve);
}
CASE(NetworkPackedBeyond) {
  const Network n(CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED);
  std::vector<size_t> sizes = kNetworkBlocks;
  sizes[0] = 9 * 8 * 4;
  sizes[1] = 9 * 32 * 4 - 4;
  RunForward(n, sizes, kWeights, n.reserve);
}
// dy and dx in the places of y and x; without states.
void RunBackward(size_t dx, size_t d_weights) {
  const Network n;
  GiveAll({dx, kOutputs});
  Give(arena + kAtWeights, d_weights);
  Give(arena + kAtWorkspace, n.workspace);
  Give(arena + kAtReserve, n.reserve);
  SUCCEED(cudnnRNNBackwardData_v8(n.handle, n.rnn, nullptr, n.y, At(Place(1)), At(Place(1)), n.x, At(Place(0)), n.hidden, nullptr,
                                  nullptr, nullptr, n.hidden, nullptr, nullptr, nullptr, n.weights, At(kAtWeights), n.workspace,
                                  At(kAtWorkspace), n.reserve, At(kAtReserve)));
  SUCCEED(cudnnRNNBackwardWeights_v8(n.handle, n.rnn, CUDNN_WGRAD_MODE_ADD, nullptr, n.x, At(Place(0)), n.hidden, nullptr, n.y,
                                     At(Place(1)), n.weights, At(kAtWeights), n.workspace, At(kAtWorkspace), n.reserve,
                                     At(kAtReserve)));
}
CASE(NetworkBackward) { RunBackward(kSequences, kWeights); }
CASE(NetworkBackwardBeyondDx) { RunBackward(kSequences - 4, kWeights); }
CASE(NetworkBackwardBeyondWeights) { RunBackward(kSequences, kWeights - 4); }

// --- The rest ---------------------------------------------------------------------------------------------------------

CASE(DropoutStates) {  // setting makes them, restoring does not
  cudnnHandle_t handle = NewDnnHandle(s1);
  size_t bytes = 0;
  SUCCEED(cudnnDropoutGetStatesSize(handle, &bytes));
  Give(arena, bytes);
  cudnnDropoutDescriptor_t dropout = nullptr;
  SUCCEED(cudnnCreateDropoutDescriptor(&dropout));
  ANSWERS(CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT, cudnnSetDropoutDescriptor(dropout, handle, 0.5F, At(0), bytes - 1, 1));
  SUCCEED(cudnnSetDropoutDescriptor(dropout, handle, 0.5F, At(0), bytes, 1));
  Return(arena);
  SUCCEED(cudnnRestoreDropoutDescriptor(dropout, handle, 0.5F, At(0), bytes, 1));
}
CASE(DropoutStatesFreed) {
  cudnnHandle_t handle = NewDnnHandle(s1);
  size_t bytes = 0;
  SUCCEED(cudnnDropoutGetStatesSize(handle, &bytes));
  Give(arena, bytes);
  Return(arena);
  cudnnDropoutDescriptor_t dropout = nullptr;
  SUCCEED(cudnnCreateDropoutDescriptor(&dropout));
  SUCCEED(cudnnSetDropoutDescriptor(dropout, handle, 0.5F, At(0), bytes, 1));
}
void Ctc(size_t gradients) {  // 20 steps, 2 sequences, 30 letters
  const int dims[] = {20, 2, 30}, strides[] = {60, 30, 1};
  constexpr size_t kProbabilities = 20 * 2 * 30 * 4;
  cudnnTensorDescriptor_t letters = nullptr;
  SUCCEED(cudnnCreateTensorDescriptor(&letters));
  SUCCEED(cudnnSetTensorNdDescriptor(letters, CUDNN_DATA_FLOAT, 3, dims, strides));
  cudnnCTCLossDescriptor_t loss = nullptr;
  SUCCEED(cudnnCreateCTCLossDescriptor(&loss));
  SUCCEED(cudnnSetCTCLossDescriptor_v9(loss, CUDNN_DATA_FLOAT, CUDNN_LOSS_NORMALIZATION_SOFTMAX, CUDNN_CTC_ZERO_OOB_GRADIENTS, 10));
  cudnnHandle_t handle = NewDnnHandle(s1);
  size_t workspace = 0;
  SUCCEED(cudnnGetCTCLossWorkspaceSize_v8(handle, CUDNN_CTC_LOSS_ALGO_DETERMINISTIC, loss, letters, letters, &workspace));
  GiveAll({kProbabilities, gradients, 8, 8, 8, workspace});
  SUCCEED(cudnnCTCLoss_v8(handle, CUDNN_CTC_LOSS_ALGO_DETERMINISTIC, loss, letters, At(Place(0)), nullptr,
                          static_cast<int*>(At(Place(2))), static_cast<int*>(At(Place(3))), At(Place(4)), letters, At(Place(1)),
                          workspace, At(Place(5))));
}
CASE(CtcClean) { Ctc(20 * 2 * 30 * 4); }
CASE(CtcBeyondGradients) { Ctc(20 * 2 * 30 * 4 - 4); }
void Transform(size_t grid) {  // 2 images of 3 channels, 8 by 8
  const int dims[] = {2, 3, 8, 8};
  cudnnSpatialTransformerDescriptor_t transformer = nullptr;
  SUCCEED(cudnnCreateSpatialTransformerDescriptor(&transformer));
  SUCCEED(cudnnSetSpatialTransformerNdDescriptor(transformer, CUDNN_SAMPLER_BILINEAR, CUDNN_DATA_FLOAT, 4, dims));
  GiveAll({2 * 6 * 4, grid, kBytesX, kBytesX});
  cudnnHandle_t handle = NewDnnHandle(s1);
  const cudnnTensorDescriptor_t x = Tensor(2, 3, 8, 8);
  SUCCEED(cudnnSpatialTfGridGeneratorForward(handle, transformer, At(Place(0)), At(Place(1))));
  SUCCEED(cudnnSpatialTfSamplerForward(handle, transformer, &kOne, x, At(Place(2)), At(Place(1)), &kNone, x, At(Place(3))));
}
CASE(TransformerClean) { Transform(2 * 8 * 8 * 2 * 4); }
CASE(TransformerBeyondGrid) { Transform(2 * 8 * 8 * 2 * 4 - 4); }
CASE(PoolingBeyondX) {
  cudnnPoolingDescriptor_t pooling = nullptr;
  SUCCEED(cudnnCreatePoolingDescriptor(&pooling));
  cudnnHandle_t handle = NewDnnHandle(s1);
  const cudnnTensorDescriptor_t x = Tensor(2, 3, 8, 8), y = Tensor(2, 3, 4, 4);
  GiveAll({kBytesX - 4, kBytesX / 4});
  ANSWERS(CUDNN_STATUS_BAD_PARAM, cudnnPoolingForward(handle, pooling, &kOne, x, At(Place(0)), &kNone, y, At(Place(1))));
  SUCCEED(cudnnSetPooling2dDescriptor(pooling, CUDNN_POOLING_MAX, CUDNN_NOT_PROPAGATE_NAN, 2, 2, 0, 0, 2, 2));
  SUCCEED(cudnnPoolingForward(handle, pooling, &kOne, x, At(Place(0)), &kNone, y, At(Place(1))));
}

}  // namespace
}  // namespace simgpu_test
