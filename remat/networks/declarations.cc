#include "remat/networks/declarations.h"

#include <algorithm>
#include <vector>

namespace hotpack::remat {
namespace {

constexpr Bytes kFloat = 4;

void Append(std::vector<int32_t>* list, int32_t id) {
  if (std::find(list->begin(), list->end(), id) == list->end()) list->push_back(id);
}

int64_t ElementsOf(const Tensor& tensor) {
  int64_t product = 1;
  for (int64_t size : tensor.shape) product *= size;
  return product;
}

}  // namespace

void DeclareAsMxnet(Network* network) {
  for (Layer& layer : network->layers) {
    if (layer.kind == "relu" || layer.kind == "sigmoid" || layer.kind == "tanh")
      Append(&layer.gradient_reads, layer.inputs.front());
    if (layer.kind != "dropout") continue;
    for (TensorId output : layer.outputs) {
      Tensor& tensor = network->tensors[static_cast<size_t>(output)];
      if (tensor.role == TensorRole::kMask) tensor.bytes = kFloat * ElementsOf(tensor);
    }
  }
}

void DeclareSoftmaxOutput(Network* network) {
  if (network->results.size() != 1 || network->layers.empty()) return;
  const Layer& last = network->layers.back();
  if (last.kind != "softmax" || last.outputs.front() != network->results[0].tensor) return;
  network->results[0].tensor = last.inputs.front();
  network->layers.pop_back();
}

void DeclareSoftmaxOutput(const Network& network, Training* training) {
  for (const Result& result : network.results) {
    const StorageId from = training->storage_of[static_cast<size_t>(result.tensor)],
                    to = training->gradient_of[static_cast<size_t>(result.tensor)];
    for (Operator& op : training->graph.operators) {
      if (std::find(op.writes.begin(), op.writes.end(), to) != op.writes.end()) op.in_place.push_back({from, to});
    }
  }
}

void MarkMasks(const Network& network, Training* training) {
  const auto mark = [&](OperatorId op, TensorId tensor) {
    const Tensor& of = network.tensors[static_cast<size_t>(tensor)];
    const StorageId storage = training->storage_of[static_cast<size_t>(tensor)];
    if (op < 0 || storage < 0 || of.role == TensorRole::kData || of.bytes != kFloat * ElementsOf(of)) return;
    Operator& reader = training->graph.operators[static_cast<size_t>(op)];
    if (std::find(reader.reads.begin(), reader.reads.end(), storage) != reader.reads.end())
      Append(&reader.masks, storage);
  };
  for (size_t i = 0; i < network.layers.size(); ++i) {
    const Layer& layer = network.layers[i];
    for (TensorId tensor : layer.gradient_reads) {
      const bool mask = network.tensors[static_cast<size_t>(tensor)].role == TensorRole::kMask;
      if (layer.kind == "relu" || (layer.kind == "dropout" && mask)) mark(training->backward_of[i], tensor);
    }
  }
}

}  // namespace hotpack::remat
