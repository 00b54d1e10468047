#include "remat/networks/mirror.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hotpack::remat {
namespace {

constexpr int32_t kNone = -1;

class Mirrorer {
 public:
  Mirrorer(const Network& network, const Training& training, const std::vector<bool>& mirrored)
      : network_(network),
        training_(training),
        mirrored_(mirrored),
        maker_of_(network.tensors.size(), kNone),
        mirror_of_(network.tensors.size(), kNone),
        layer_of_(training.graph.operators.size(), kNone),
        done_(network.layers.size()) {
    for (size_t i = 0; i < network.layers.size(); ++i) {
      for (TensorId output : network.layers[i].outputs)
        maker_of_[static_cast<size_t>(output)] = static_cast<int32_t>(i);
      if (training.backward_of[i] != kNone)
        layer_of_[static_cast<size_t>(training.backward_of[i])] = static_cast<int32_t>(i);
    }
  }

  Graph Run() {
    graph_.storages = training_.graph.storages;
    for (size_t i = 0; i < training_.graph.operators.size(); ++i) {
      Operator op = training_.graph.operators[i];
      const int32_t layer = layer_of_[i];
      if (layer != kNone && mirrored_[static_cast<size_t>(layer)]) ReadMirrors(static_cast<size_t>(layer), &op);
      graph_.operators.push_back(std::move(op));
    }
    return std::move(graph_);
  }

 private:
  StorageId StorageOf(TensorId tensor) const { return training_.storage_of[static_cast<size_t>(tensor)]; }
  bool IsMirrored(TensorId tensor) const {
    const int32_t maker = maker_of_[static_cast<size_t>(tensor)];
    return maker != kNone && mirrored_[static_cast<size_t>(maker)];
  }

  // Lets the gradient of a mirrored layer read mirrors, as far as there are any.
  void ReadMirrors(size_t layer, Operator* op) {
    for (TensorId tensor : network_.layers[layer].gradient_reads) {
      if (!IsMirrored(tensor)) continue;
      Need(static_cast<size_t>(maker_of_[static_cast<size_t>(tensor)]));
      Replace(tensor, op);
    }
  }
  void Replace(TensorId tensor, Operator* op) const {
    const StorageId from = StorageOf(tensor), to = mirror_of_[static_cast<size_t>(tensor)];
    std::replace(op->reads.begin(), op->reads.end(), from, to);
    std::replace(op->masks.begin(), op->masks.end(), from, to);
    for (InPlace& pair : op->in_place) {
      if (pair.read == from) pair.read = to;
    }
  }

  // Adds the mirror of a layer behind those that it needs. Uses a stack instead of recursion, since chains over time
  // are long.
  void Need(size_t wanted) {
    std::vector<size_t> open = {wanted};
    while (!open.empty()) {
      const size_t layer = open.back();
      const size_t before = open.size();
      if (!done_[layer]) {
        for (TensorId input : network_.layers[layer].inputs) {
          const int32_t maker = maker_of_[static_cast<size_t>(input)];
          if (IsMirrored(input) && !done_[static_cast<size_t>(maker)]) open.push_back(static_cast<size_t>(maker));
        }
      }
      if (open.size() > before) continue;
      open.pop_back();
      if (done_[layer]) continue;
      done_[layer] = true;
      Append(layer);
    }
  }

  void Append(size_t layer) {
    Operator op = training_.graph.operators[static_cast<size_t>(training_.forward_of[layer])];
    op.phase = Phase::kBackward;
    absl::StrAppend(&op.name, ".mirror");
    for (TensorId input : network_.layers[layer].inputs) {
      if (IsMirrored(input)) Replace(input, &op);
    }
    for (TensorId output : network_.layers[layer].outputs) {
      const StorageId from = StorageOf(output);
      Storage storage = graph_.storages[static_cast<size_t>(from)];
      absl::StrAppend(&storage.name, ".mirror");
      const auto to = mirror_of_[static_cast<size_t>(output)] = static_cast<StorageId>(graph_.storages.size());
      graph_.storages.push_back(std::move(storage));
      std::replace(op.writes.begin(), op.writes.end(), from, to);
      for (InPlace& pair : op.in_place) {
        if (pair.made == from) pair.made = to;
      }
    }
    graph_.operators.push_back(std::move(op));
  }

  const Network& network_;
  const Training& training_;
  const std::vector<bool>& mirrored_;
  std::vector<int32_t> maker_of_;     // by tensor: the layer that makes it
  std::vector<StorageId> mirror_of_;  // by tensor
  std::vector<int32_t> layer_of_;     // by operator: the layer whose gradient it makes
  std::vector<bool> done_;            // by layer: its mirror has run
  Graph graph_;
};

}  // namespace

Graph Mirror(const Network& network, const Training& training, const std::vector<bool>& mirrored) {
  return Mirrorer(network, training, mirrored).Run();
}

}  // namespace hotpack::remat
