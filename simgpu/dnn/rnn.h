// A recurrent network, and the layout of its weights.
//
//   pseudo layer  0 ... L*D-1, layer by layer, the directions of a layer next to each other
//   weight space  [ layer 0: input matrices of its gates | recurrent matrices | projection ] [ layer 1: ... ] ...
//                 [ layer 0: input biases | recurrent biases ] [ layer 1: ... ] ...
#pragma once

#include "simgpu/dnn/dnn.h"

struct cudnnRNNStruct {
  bool set = false;
  cudnnRNNMode_t mode = CUDNN_LSTM;
  cudnnRNNBiasMode_t bias = CUDNN_RNN_DOUBLE_BIAS;
  cudnnRNNInputMode_t input = CUDNN_LINEAR_INPUT;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  int directions = 1;
  int64_t input_size = 0, hidden_size = 0, projection_size = 0, layers = 0;
  cudnnDropoutDescriptor_t dropout = nullptr;

  int Gates() const { return mode == CUDNN_LSTM ? 4 : mode == CUDNN_GRU ? 3 : 1; }
  bool Projects() const { return mode == CUDNN_LSTM && projection_size != hidden_size; }
  int64_t OutputSize() const { return Projects() ? projection_size : hidden_size; }
  uint64_t ElementBytes() const { return simgpu::dnn::ElementBits(type) / 8; }
};

struct cudnnRNNDataStruct {
  bool set = false;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  cudnnRNNDataLayout_t layout = CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED;
  int64_t steps = 0, batch = 0, vector_size = 0;
  uint64_t vectors = 0;  // in memory: the sum of all sequences' lengths if packed, else steps * batch
};

namespace simgpu::dnn {

// One matrix or bias of the weight space; offsets and sizes in elements. rows = 0: none.
struct WeightPart {
  uint64_t offset = 0;
  int64_t rows = 0, columns = 0;
};

// Returns linear layer `id` of a pseudo layer: 0 ... gates-1 apply to the input, gates ... 2*gates-1 to the hidden
// state, 2*gates is the projection.
WeightPart MatrixOf(const cudnnRNNStruct& rnn, int64_t pseudo_layer, int id);
WeightPart BiasOf(const cudnnRNNStruct& rnn, int64_t pseudo_layer, int id);
uint64_t WeightElements(const cudnnRNNStruct& rnn);

// By the simulator's own rule, in bytes, rounded up to 256. The workspace holds the input products of one layer's
// gates. The reserve (training only) holds each layer's gate results and cell state, and one byte per dropped value.
uint64_t RnnWorkspace(const cudnnRNNStruct& rnn, const cudnnRNNDataStruct& x);
uint64_t RnnReserve(const cudnnRNNStruct& rnn, const cudnnRNNDataStruct& x);

}  // namespace simgpu::dnn
