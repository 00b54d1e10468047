// Sizes and offsets in the spaces of a recurrent network.
#include "simgpu/dnn/rnn.h"
#include "simgpu/dnn/workspace.h"

namespace simgpu::dnn {
namespace {

int64_t InputOf(const cudnnRNNStruct& rnn, int64_t layer) {
  return layer == 0 ? rnn.input_size : rnn.OutputSize() * rnn.directions;
}

// Without weights for its input, a first layer takes it unchanged (CUDNN_SKIP_INPUT).
bool SkipsInput(const cudnnRNNStruct& rnn, int64_t layer) { return layer == 0 && rnn.input == CUDNN_SKIP_INPUT; }

uint64_t LayerElements(const cudnnRNNStruct& rnn, int64_t layer) {
  const int64_t inputs = SkipsInput(rnn, layer) ? 0 : InputOf(rnn, layer);
  const int64_t projection = rnn.Projects() ? rnn.projection_size * rnn.hidden_size : 0;
  return static_cast<uint64_t>(rnn.Gates() * rnn.hidden_size * (inputs + rnn.OutputSize()) + projection);
}

int BiasesOfGate(const cudnnRNNStruct& rnn) {
  return rnn.bias == CUDNN_RNN_NO_BIAS ? 0 : rnn.bias == CUDNN_RNN_DOUBLE_BIAS ? 2 : 1;
}

uint64_t MatrixElements(const cudnnRNNStruct& rnn, int64_t before_layer) {
  uint64_t elements = 0;
  for (int64_t layer = 0; layer < before_layer; ++layer) {
    elements += LayerElements(rnn, layer) * static_cast<uint64_t>(rnn.directions);
  }
  return elements;
}

}  // namespace

WeightPart MatrixOf(const cudnnRNNStruct& rnn, int64_t pseudo_layer, int id) {
  const int64_t layer = pseudo_layer / rnn.directions, inputs = InputOf(rnn, layer);
  const int gates = rnn.Gates();
  const int64_t input_part = SkipsInput(rnn, layer) ? 0 : gates * rnn.hidden_size * inputs;
  const uint64_t start =
      MatrixElements(rnn, layer) + LayerElements(rnn, layer) * static_cast<uint64_t>(pseudo_layer % rnn.directions);
  const auto at = [&](int64_t offset, int64_t rows, int64_t columns) {
    return WeightPart{start + static_cast<uint64_t>(offset), rows, columns};
  };
  if (id < gates)
    return SkipsInput(rnn, layer) ? WeightPart{} : at(id * rnn.hidden_size * inputs, rnn.hidden_size, inputs);
  const int64_t recurrent = rnn.hidden_size * rnn.OutputSize();
  if (id < 2 * gates) return at(input_part + (id - gates) * recurrent, rnn.hidden_size, rnn.OutputSize());
  return rnn.Projects() ? at(input_part + gates * recurrent, rnn.projection_size, rnn.hidden_size) : WeightPart{};
}

WeightPart BiasOf(const cudnnRNNStruct& rnn, int64_t pseudo_layer, int id) {
  const int gates = rnn.Gates();
  const bool of_input = id < gates;
  if (id >= 2 * gates || BiasesOfGate(rnn) == 0) return {};
  if (rnn.bias == CUDNN_RNN_SINGLE_INP_BIAS && !of_input) return {};
  if (rnn.bias == CUDNN_RNN_SINGLE_REC_BIAS && of_input) return {};
  const int place = BiasesOfGate(rnn) == 2 || of_input ? id : id - gates;
  const int64_t before = pseudo_layer * gates * BiasesOfGate(rnn) + place;
  return {MatrixElements(rnn, rnn.layers) + static_cast<uint64_t>(before * rnn.hidden_size), rnn.hidden_size, 1};
}

uint64_t WeightElements(const cudnnRNNStruct& rnn) {
  return MatrixElements(rnn, rnn.layers) +
         static_cast<uint64_t>(rnn.layers * rnn.directions * rnn.Gates() * BiasesOfGate(rnn) * rnn.hidden_size);
}

uint64_t RnnWorkspace(const cudnnRNNStruct& rnn, const cudnnRNNDataStruct& x) {
  const int64_t values = rnn.directions * rnn.Gates() * rnn.hidden_size;
  return Rounded(x.vectors * static_cast<uint64_t>(values) * rnn.ElementBytes());
}

uint64_t RnnReserve(const cudnnRNNStruct& rnn, const cudnnRNNDataStruct& x) {
  const int64_t values = rnn.layers * rnn.directions * (rnn.Gates() + 1) * rnn.hidden_size;
  const bool drops = rnn.dropout != nullptr && rnn.dropout->probability > 0;
  const int64_t dropped = drops ? (rnn.layers - 1) * rnn.directions * rnn.OutputSize() : 0;
  return Rounded(x.vectors * (static_cast<uint64_t>(values) * rnn.ElementBytes() + static_cast<uint64_t>(dropped)));
}

}  // namespace simgpu::dnn
