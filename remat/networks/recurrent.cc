#include "remat/networks/recurrent.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hotpack::remat {
namespace {

// A kernel that copies. Its gradient reads only gradients.
Layer Copy(const NetworkBuilder& net, const std::string& kind, TensorId x) {
  Layer layer;
  layer.kind = kind;
  layer.name = net.NextName(kind);
  layer.inputs = {x};
  return layer;
}

TensorId Product(NetworkBuilder* net, TensorId x, TensorId weight) {
  return net->FullyConnected(x, net->ShapeOf(weight)[0], false, weight);
}

// a - b, modelled as a sum.
TensorId Difference(NetworkBuilder* net, TensorId a, TensorId b) { return net->Sum(a, b); }

std::vector<TensorId> Gates(NetworkBuilder* net, TensorId a, TensorId b, int64_t parts) {
  const std::vector<int64_t> shape = net->ShapeOf(a);
  Layer layer = Copy(*net, "slice", net->Sum(a, b));
  for (int64_t i = 0; i < parts; ++i) {
    layer.outputs.push_back(
        net->NewTensor(absl::StrCat(layer.name, ".", i), {shape[0], shape[1] / parts}, TensorRole::kFeatureMap));
  }
  const std::vector<TensorId> outputs = layer.outputs;
  net->Add(std::move(layer));
  return outputs;
}

}  // namespace

CellWeights MakeLstmWeights(NetworkBuilder* net, int64_t inputs, int64_t hidden) {
  return {{net->Weight({4 * hidden, inputs})}, {net->Weight({4 * hidden, hidden})}};
}

CellWeights MakeGruWeights(NetworkBuilder* net, int64_t inputs, int64_t hidden) {
  return {{net->Weight({2 * hidden, inputs}), net->Weight({hidden, inputs})},
          {net->Weight({2 * hidden, hidden}), net->Weight({hidden, hidden})}};
}

CellState ZeroState(NetworkBuilder* net, int64_t batch, int64_t hidden) {
  return {net->Data("h0", {batch, hidden}), net->Data("c0", {batch, hidden})};
}

CellState LstmStep(NetworkBuilder* net, const CellWeights& weights, TensorId x, CellState before) {
  const TensorId of_input = Product(net, x, weights.of_input[0]);
  const std::vector<TensorId> gates = Gates(net, of_input, Product(net, before.h, weights.of_hidden[0]), 4);
  const TensorId in = net->Sigmoid(gates[0]), forget = net->Sigmoid(gates[1]), made = net->Tanh(gates[2]),
                 out = net->Sigmoid(gates[3]);
  const TensorId held = net->Multiply(forget, before.c);
  const TensorId c = net->Sum(held, net->Multiply(in, made));
  return {net->Multiply(out, net->Tanh(c)), c};
}

CellState GruStep(NetworkBuilder* net, const CellWeights& weights, TensorId x, CellState before, bool normalise) {
  TensorId of_input = Product(net, x, weights.of_input[0]);
  if (normalise) of_input = net->BatchNorm(of_input);
  const std::vector<TensorId> gates = Gates(net, of_input, Product(net, before.h, weights.of_hidden[0]), 2);
  const TensorId update = net->Sigmoid(gates[0]), reset = net->Sigmoid(gates[1]);
  const TensorId candidate_input = Product(net, x, weights.of_input[1]);
  const TensorId candidate_hidden = Product(net, net->Multiply(before.h, reset), weights.of_hidden[1]);
  const TensorId candidate = net->Tanh(net->Sum(candidate_input, candidate_hidden));
  return {net->Sum(before.h, net->Multiply(update, Difference(net, candidate, before.h))), -1};
}

std::vector<TensorId> Split(NetworkBuilder* net, TensorId x, int64_t parts, std::vector<int64_t> shape) {
  Layer layer = Copy(*net, "split", x);
  for (int64_t i = 0; i < parts; ++i)
    layer.outputs.push_back(net->NewTensor(absl::StrCat(layer.name, ".", i), shape, TensorRole::kFeatureMap));
  const std::vector<TensorId> outputs = layer.outputs;
  net->Add(std::move(layer));
  return outputs;
}

TensorId Rearranged(NetworkBuilder* net, TensorId x, std::vector<int64_t> shape) {
  Layer layer = Copy(*net, "rearrange", x);
  layer.outputs = {net->NewTensor(layer.name, std::move(shape), TensorRole::kFeatureMap)};
  return net->Add(std::move(layer));
}

absl::StatusOr<Network> Lstm(const LstmOptions& options) {
  NetworkBuilder net;
  const TensorId labels = net.Data("labels", {options.steps, options.batch});
  const TensorId inputs = net.Data("inputs", {options.steps, options.batch, options.inputs});
  const std::vector<TensorId> steps = Split(&net, inputs, options.steps, {options.batch, options.inputs});
  std::vector<CellWeights> weights;
  std::vector<CellState> states;
  for (int64_t layer = 0; layer < options.layers; ++layer) {
    weights.push_back(MakeLstmWeights(&net, layer == 0 ? options.inputs : options.hidden, options.hidden));
    states.push_back(ZeroState(&net, options.batch, options.hidden));
  }
  std::vector<TensorId> results;
  for (TensorId x : steps) {
    for (size_t layer = 0; layer < weights.size(); ++layer) {
      states[layer] = LstmStep(&net, weights[layer], x, states[layer]);
      x = states[layer].h;
    }
    results.push_back(x);
  }
  const TensorId result = net.Softmax(net.FullyConnected(net.Concat(results, 0), options.classes));
  net.Result(result, labels);
  return net.Finish();
}

std::vector<Generator> LstmGenerators() {
  Generator lstm = {"lstm",
                    "LSTM layers over steps, a classifier at each (Chen et al. 2016, section 5.3)",
                    {"layers", "hidden"},
                    {{"layers", 4, 1, 1000, "one upon the other"},
                     {"hidden", 1024, 1, 1'000'000, "of a layer"},
                     {"steps", 64, 1, 10'000, "of the sequence"},
                     BatchKey(64),
                     {"inputs", 50, 1, 1'000'000, "numbers at each step"},
                     ClassesKey(5000)}};
  lstm.network = [](const Parameters& of) {
    return Lstm({of.at("layers"), of.at("hidden"), of.at("steps"), of.at("batch"), of.at("inputs"), of.at("classes")});
  };
  return {lstm};
}

}  // namespace hotpack::remat
