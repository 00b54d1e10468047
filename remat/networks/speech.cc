#include "remat/networks/speech.h"

#include <vector>

#include "remat/networks/builder.h"
#include "remat/networks/recurrent.h"

namespace hotpack::remat {
namespace {

// A convolution with different strides by direction, which the builder's windows do not have.
TensorId StridedConvolution(NetworkBuilder* net, TensorId x, int64_t height, int64_t width, int64_t down,
                            int64_t across) {
  constexpr int64_t kChannels = 32;
  const std::vector<int64_t> from = net->ShapeOf(x);
  Layer layer;
  layer.kind = "convolution";
  layer.name = net->NextName(layer.kind);
  layer.inputs = {x};
  layer.weights = {net->Weight({kChannels, from[1], height, width})};
  layer.gradient_reads = {x, layer.weights[0]};
  layer.heavy = true;
  layer.outputs = {net->NewTensor(layer.name,
                                  {from[0], kChannels, (from[2] - height) / down + 1, (from[3] - width) / across + 1},
                                  TensorRole::kFeatureMap)};
  layer.flops = layer.gradient_flops =
      2.0 * static_cast<double>(from[1] * height * width) * static_cast<double>(net->ElementsOf(layer.outputs[0]));
  return net->Relu(net->BatchNorm(net->Add(std::move(layer))));
}

std::vector<TensorId> Direction(NetworkBuilder* net, const std::vector<TensorId>& inputs, const SpeechOptions& of,
                                bool backwards) {
  std::vector<CellWeights> weights;
  std::vector<CellState> states;
  for (int64_t layer = 0; layer < of.layers; ++layer) {
    weights.push_back(MakeGruWeights(net, layer == 0 ? net->ShapeOf(inputs.front()).back() : of.hidden, of.hidden));
    states.push_back({net->Data("h0", {of.batch, of.hidden}), -1});
  }
  std::vector<TensorId> results(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const size_t at = backwards ? inputs.size() - 1 - i : i;
    TensorId x = inputs[at];
    for (size_t layer = 0; layer < weights.size(); ++layer) {
      states[layer] = GruStep(net, weights[layer], x, states[layer], true);
      x = states[layer].h;
    }
    results[at] = x;
  }
  return results;
}

}  // namespace

absl::StatusOr<Network> Speech(const SpeechOptions& options) {
  if (options.frames < 31 || options.bands < 81)
    return absl::InvalidArgumentError("a spectrogram smaller than the convolutions' windows");
  NetworkBuilder net;
  TensorId x = net.Data("spectrogram", {options.batch, 1, options.frames, options.bands});
  x = StridedConvolution(&net, x, 11, 41, 2, 2);
  x = StridedConvolution(&net, x, 11, 21, 1, 2);
  const std::vector<int64_t> shape = net.ShapeOf(x);
  const int64_t steps = shape[2], width = shape[1] * shape[3];
  const std::vector<TensorId> inputs =
      Split(&net, Rearranged(&net, x, {steps, options.batch, width}), steps, {options.batch, width});
  const std::vector<TensorId> there = Direction(&net, inputs, options, false),
                              back = Direction(&net, inputs, options, true);
  std::vector<TensorId> both;
  for (size_t i = 0; i < inputs.size(); ++i) both.push_back(net.Concat({there[i], back[i]}, 1));
  const TensorId rear = net.Relu(net.BatchNorm(net.FullyConnected(net.Concat(both, 0), options.hidden)));
  const TensorId labels = net.Data("labels", {options.batch, steps});
  net.Result(net.Softmax(net.FullyConnected(rear, options.classes)), labels);
  return net.Finish();
}

std::vector<Generator> SpeechGenerators() {
  Generator speech = {"deepspeech2",
                      "speech recognition by convolutions and GRU in both directions",
                      {"layers", "hidden"},
                      {{"layers", 5, 1, 100, "of each direction"},
                       {"hidden", 1760, 1, 1'000'000, "of a layer"},
                       {"frames", 800, 31, 10'000, "of the spectrogram"},
                       {"bands", 161, 81, 100'000, "of the spectrogram"},
                       BatchKey(24),
                       ClassesKey(29)}};
  speech.network = [](const Parameters& of) {
    return Speech(
        {of.at("layers"), of.at("hidden"), of.at("frames"), of.at("bands"), of.at("batch"), of.at("classes")});
  };
  return {speech};
}

}  // namespace hotpack::remat
