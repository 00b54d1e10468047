// Recurrent networks: descriptors and the three passes. rnn.h shows the layout of the weights.
#include "simgpu/dnn/rnn.h"

#include <algorithm>

namespace simgpu::dnn {
namespace {

// The common part of the passes: the network, its spaces, the sequences' lengths in device memory.
struct Pass {
  cudnnHandle_t handle;
  cudnnRNNDescriptor_t rnn;
  cudnnRNNDataDescriptor_t x, y;
  const int32_t* lengths;
  uint64_t weight_bytes, workspace_bytes, reserve_bytes;
  const void *weights, *workspace, *reserve;
  bool training;

  cudnnStatus_t Check() const {
    if (!Valid(handle) || rnn == nullptr || x == nullptr || y == nullptr || !rnn->set || !x->set || !y->set) {
      return CUDNN_STATUS_BAD_PARAM;
    }
    if (x->vectors != y->vectors || x->vector_size != rnn->input_size ||
        y->vector_size != rnn->OutputSize() * rnn->directions) {
      return CUDNN_STATUS_BAD_PARAM;
    }
    if (weights == nullptr || weight_bytes < WeightElements(*rnn) * rnn->ElementBytes()) return CUDNN_STATUS_BAD_PARAM;
    if (workspace == nullptr || workspace_bytes < RnnWorkspace(*rnn, *x)) return CUDNN_STATUS_BAD_PARAM;
    if (training && (reserve == nullptr || reserve_bytes < RnnReserve(*rnn, *x))) return CUDNN_STATUS_BAD_PARAM;
    return CUDNN_STATUS_SUCCESS;
  }

  uint64_t WeightBytes() const { return WeightElements(*rnn) * rnn->ElementBytes(); }

  Work Begin() const {
    Work work(handle);
    work.Read(lengths, static_cast<uint64_t>(x->batch) * sizeof(int32_t)).Write(workspace, RnnWorkspace(*rnn, *x));
    if (training) work.Write(reserve, RnnReserve(*rnn, *x));
    if (rnn->dropout != nullptr && rnn->dropout->probability > 0 && training) {
      work.Write(rnn->dropout->states, rnn->dropout->state_bytes);
    }
    return work;
  }
};

uint64_t DataBytes(const cudnnRNNDataStruct& data) {
  return data.vectors * static_cast<uint64_t>(data.vector_size) * ElementBits(data.type) / 8;
}

uint64_t BytesOf(cudnnTensorDescriptor_t tensor) { return tensor != nullptr ? TensorBytes(*tensor) : 0; }

// Describes the tensor of one part and its address; an absent part has neither.
void Describe(const WeightPart& part, const cudnnRNNStruct& rnn, const void* space, cudnnTensorDescriptor_t tensor,
              void** address) {
  if (tensor != nullptr) tensor->count = 0;
  if (address != nullptr) *address = nullptr;
  if (part.rows == 0) return;
  if (tensor != nullptr) {
    const int rows = static_cast<int>(part.rows), columns = static_cast<int>(part.columns);
    const int dims[] = {1, rows, columns}, strides[] = {rows * columns, columns, 1};
    cudnnSetTensorNdDescriptor(tensor, rnn.type, 3, dims, strides);
  }
  if (address != nullptr && space != nullptr) {
    *address = const_cast<char*>(static_cast<const char*>(space)) + part.offset * rnn.ElementBytes();
  }
}

}  // namespace
}  // namespace simgpu::dnn

using namespace simgpu::dnn;  // NOLINT: the functions below are of the C interface

extern "C" {

SIMGPU_DNN_DESCRIPTOR(RNNDescriptor, cudnnRNNDescriptor_t)
SIMGPU_DNN_DESCRIPTOR(RNNDataDescriptor, cudnnRNNDataDescriptor_t)

cudnnStatus_t cudnnSetRNNDescriptor_v8(cudnnRNNDescriptor_t rnn, cudnnRNNAlgo_t, cudnnRNNMode_t mode,
                                       cudnnRNNBiasMode_t bias, cudnnDirectionMode_t direction,
                                       cudnnRNNInputMode_t input, cudnnDataType_t type, cudnnDataType_t,
                                       cudnnMathType_t, int32_t input_size, int32_t hidden_size,
                                       int32_t projection_size, int32_t layers, cudnnDropoutDescriptor_t dropout,
                                       uint32_t) {
  if (rnn == nullptr || input_size < 1 || hidden_size < 1 || layers < 1 || projection_size < 0 ||
      projection_size > hidden_size || ElementBits(type) < 8) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  *rnn = {true,       mode,        bias,
          input,      type,        direction == CUDNN_BIDIRECTIONAL ? 2 : 1,
          input_size, hidden_size, projection_size == 0 ? hidden_size : projection_size,
          layers,     dropout};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetRNNDataDescriptor(cudnnRNNDataDescriptor_t data, cudnnDataType_t type,
                                        cudnnRNNDataLayout_t layout, int steps, int batch, int vector_size,
                                        const int lengths[], void*) {
  if (data == nullptr || lengths == nullptr || steps < 1 || batch < 1 || vector_size < 1) return CUDNN_STATUS_BAD_PARAM;
  uint64_t together = 0;
  for (int i = 0; i < batch; ++i) {
    if (lengths[i] < 0 || lengths[i] > steps) return CUDNN_STATUS_BAD_PARAM;
    together += static_cast<uint64_t>(lengths[i]);
  }
  const bool packed = layout == CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED;
  *data = {true,
           type,
           layout,
           steps,
           batch,
           vector_size,
           packed ? together : static_cast<uint64_t>(steps) * static_cast<uint64_t>(batch)};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetRNNWeightSpaceSize(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, size_t* bytes) {
  if (!Valid(handle) || rnn == nullptr || !rnn->set || bytes == nullptr) return CUDNN_STATUS_BAD_PARAM;
  *bytes = WeightElements(*rnn) * rnn->ElementBytes();
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetRNNTempSpaceSizes(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, cudnnForwardMode_t mode,
                                        cudnnRNNDataDescriptor_t x, size_t* workspace, size_t* reserve) {
  if (!Valid(handle) || rnn == nullptr || x == nullptr || !rnn->set || !x->set) return CUDNN_STATUS_BAD_PARAM;
  if (workspace != nullptr) *workspace = RnnWorkspace(*rnn, *x);
  if (reserve != nullptr) *reserve = mode == CUDNN_FWD_MODE_TRAINING ? RnnReserve(*rnn, *x) : 0;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetRNNWeightParams(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, int32_t pseudo_layer,
                                      size_t bytes, const void* space, int32_t id, cudnnTensorDescriptor_t matrix,
                                      void** matrix_address, cudnnTensorDescriptor_t bias, void** bias_address) {
  if (!Valid(handle) || rnn == nullptr || !rnn->set) return CUDNN_STATUS_BAD_PARAM;
  const int ids = 2 * rnn->Gates() + (rnn->mode == CUDNN_LSTM ? 1 : 0);
  if (pseudo_layer < 0 || pseudo_layer >= rnn->layers * rnn->directions || id < 0 || id >= ids ||
      bytes < WeightElements(*rnn) * rnn->ElementBytes()) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  Describe(MatrixOf(*rnn, pseudo_layer, id), *rnn, space, matrix, matrix_address);
  Describe(BiasOf(*rnn, pseudo_layer, id), *rnn, space, bias, bias_address);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnRNNForward(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, cudnnForwardMode_t mode,
                              const int32_t lengths[], cudnnRNNDataDescriptor_t x_of, const void* x,
                              cudnnRNNDataDescriptor_t y_of, void* y, cudnnTensorDescriptor_t h_of, const void* hx,
                              void* hy, cudnnTensorDescriptor_t c_of, const void* cx, void* cy, size_t weight_bytes,
                              const void* weights, size_t workspace_bytes, void* workspace, size_t reserve_bytes,
                              void* reserve) {
  const Pass pass{handle,          rnn,           x_of,    y_of,      lengths, weight_bytes,
                  workspace_bytes, reserve_bytes, weights, workspace, reserve, mode == CUDNN_FWD_MODE_TRAINING};
  if (const cudnnStatus_t status = pass.Check(); status != CUDNN_STATUS_SUCCESS) return status;
  if (x == nullptr || y == nullptr) return CUDNN_STATUS_BAD_PARAM;
  Work work = pass.Begin();
  work.Read(weights, pass.WeightBytes()).Read(x, DataBytes(*x_of)).Read(hx, BytesOf(h_of)).Read(cx, BytesOf(c_of));
  work.Write(y, DataBytes(*y_of)).Write(hy, BytesOf(h_of)).Write(cy, BytesOf(c_of));
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnRNNBackwardData_v8(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, const int32_t lengths[],
                                      cudnnRNNDataDescriptor_t y_of, const void* y, const void* dy,
                                      cudnnRNNDataDescriptor_t x_of, void* dx, cudnnTensorDescriptor_t h_of,
                                      const void* hx, const void* dhy, void* dhx, cudnnTensorDescriptor_t c_of,
                                      const void* cx, const void* dcy, void* dcx, size_t weight_bytes,
                                      const void* weights, size_t workspace_bytes, void* workspace,
                                      size_t reserve_bytes, void* reserve) {
  const Pass pass{handle,          rnn,           x_of,    y_of,      lengths, weight_bytes,
                  workspace_bytes, reserve_bytes, weights, workspace, reserve, true};
  if (const cudnnStatus_t status = pass.Check(); status != CUDNN_STATUS_SUCCESS) return status;
  if (y == nullptr || dy == nullptr || dx == nullptr) return CUDNN_STATUS_BAD_PARAM;
  Work work = pass.Begin();
  work.Read(weights, pass.WeightBytes()).Read(y, DataBytes(*y_of)).Read(dy, DataBytes(*y_of));
  work.Read(hx, BytesOf(h_of)).Read(dhy, BytesOf(h_of)).Read(cx, BytesOf(c_of)).Read(dcy, BytesOf(c_of));
  work.Write(dx, DataBytes(*x_of)).Write(dhx, BytesOf(h_of)).Write(dcx, BytesOf(c_of));
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnRNNBackwardWeights_v8(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, cudnnWgradMode_t mode,
                                         const int32_t lengths[], cudnnRNNDataDescriptor_t x_of, const void* x,
                                         cudnnTensorDescriptor_t h_of, const void* hx, cudnnRNNDataDescriptor_t y_of,
                                         const void* y, size_t weight_bytes, void* d_weights, size_t workspace_bytes,
                                         void* workspace, size_t reserve_bytes, void* reserve) {
  if (mode != CUDNN_WGRAD_MODE_ADD) return CUDNN_STATUS_NOT_SUPPORTED;  // as documented: the gradients are added
  const Pass pass{handle,          rnn,           x_of,      y_of,      lengths, weight_bytes,
                  workspace_bytes, reserve_bytes, d_weights, workspace, reserve, true};
  if (const cudnnStatus_t status = pass.Check(); status != CUDNN_STATUS_SUCCESS) return status;
  if (x == nullptr || y == nullptr) return CUDNN_STATUS_BAD_PARAM;
  Work work = pass.Begin();
  work.Read(x, DataBytes(*x_of)).Read(y, DataBytes(*y_of)).Read(hx, BytesOf(h_of));
  work.Write(d_weights, pass.WeightBytes());
  return CUDNN_STATUS_SUCCESS;
}

}  // extern "C"
