#include "remat/networks/training_graph.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hotpack::remat {
namespace {

constexpr int32_t kNone = -1;

class Maker {
 public:
  Maker(const Network& network, const TrainingOptions& options) : network_(network), options_(options) {
    result_.storage_of.assign(network.tensors.size(), kNone);
    result_.gradient_of.assign(network.tensors.size(), kNone);
    result_.forward_of.assign(network.layers.size(), kNone);
    result_.backward_of.assign(network.layers.size(), kNone);
    follows_.assign(network.tensors.size(), false);
  }

  absl::StatusOr<Training> Run() {
    if (absl::Status status = CheckIds(); !status.ok()) return status;
    for (size_t i = 0; i < network_.layers.size(); ++i) Forward(i);
    for (const Result& result : network_.results) Loss(result);
    for (size_t i = network_.layers.size(); i-- > 0;) Backward(i);
    if (options_.weights && options_.updates) Updates();
    if (absl::Status status = Check(result_.graph); !status.ok()) return status;
    return std::move(result_);
  }

 private:
  const Tensor& Of(TensorId tensor) const { return network_.tensors[static_cast<size_t>(tensor)]; }
  double BytesOf(TensorId tensor) const { return static_cast<double>(Of(tensor).bytes); }
  bool IsWeight(TensorId tensor) const { return Of(tensor).role == TensorRole::kWeight; }

  absl::Status CheckIds() const {
    const auto is_one = [this](TensorId id) { return id >= 0 && static_cast<size_t>(id) < network_.tensors.size(); };
    for (const Layer& layer : network_.layers) {
      for (const auto* list : {&layer.inputs, &layer.weights, &layer.outputs, &layer.gradient_reads}) {
        if (std::all_of(list->begin(), list->end(), is_one)) continue;
        return absl::InvalidArgumentError(absl::StrCat("layer ", layer.name, ": no such tensor"));
      }
    }
    if (network_.results.empty()) return absl::InvalidArgumentError("the network has no result to take a loss from");
    for (const Result& result : network_.results) {
      if (!is_one(result.tensor) || (result.labels != kNone && !is_one(result.labels)))
        return absl::InvalidArgumentError("no such result");
    }
    return absl::OkStatus();
  }

  StorageId AddStorage(std::string name, Bytes bytes, StorageKind kind, bool given = false, bool kept = false) {
    result_.graph.storages.push_back({std::move(name), bytes, kind, given, kept});
    return static_cast<StorageId>(result_.graph.storages.size()) - 1;
  }

  // Returns the tensor's storage. kNone: it is a weight, and the graph has only feature maps.
  StorageId StorageOf(TensorId tensor) {
    StorageId& storage = result_.storage_of[static_cast<size_t>(tensor)];
    if (storage != kNone) return storage;
    const Tensor& of = Of(tensor);
    switch (of.role) {
      case TensorRole::kWeight:
        if (options_.weights) storage = AddStorage(of.name, of.bytes, StorageKind::kWeight, true, true);
        break;
      case TensorRole::kData:
        storage = AddStorage(of.name, of.bytes, StorageKind::kOther, true);
        break;
      case TensorRole::kStatistics:
        storage = AddStorage(of.name, of.bytes, StorageKind::kOther);
        break;
      case TensorRole::kFeatureMap:
      case TensorRole::kMask:
        storage = AddStorage(of.name, of.bytes, StorageKind::kFeatureMap);
        break;
    }
    return storage;
  }

  void Append(std::vector<StorageId>* list, StorageId storage) const {
    if (storage != kNone && std::find(list->begin(), list->end(), storage) == list->end()) list->push_back(storage);
  }

  OperatorId Add(Operator op) {
    result_.graph.operators.push_back(std::move(op));
    return static_cast<OperatorId>(result_.graph.operators.size()) - 1;
  }

  void Forward(size_t index) {
    const Layer& layer = network_.layers[index];
    Operator op;
    op.name = layer.name;
    double bytes = 0;
    bool follows = !layer.weights.empty();
    for (const auto* list : {&layer.inputs, &layer.weights}) {
      for (TensorId tensor : *list) {
        Append(&op.reads, StorageOf(tensor));
        bytes += BytesOf(tensor);
        follows |= follows_[static_cast<size_t>(tensor)];
      }
    }
    for (TensorId tensor : layer.outputs) {
      Append(&op.writes, StorageOf(tensor));
      bytes += BytesOf(tensor);
      follows_[static_cast<size_t>(tensor)] = follows;
    }
    for (const TensorPair& pair : layer.in_place) {
      const bool fits = Of(pair.to).bytes <= Of(pair.from).bytes && Of(pair.from).role != TensorRole::kData;
      if (fits) op.in_place.push_back({StorageOf(pair.from), StorageOf(pair.to)});
    }
    op.cost = CostOf(options_.device, layer.flops, layer.moved == kOperandsOnce ? bytes : layer.moved);
    op.workspace = layer.workspace;
    op.heavy = layer.heavy;
    op.random = layer.random;
    result_.forward_of[index] = Add(std::move(op));
  }

  void Loss(const Result& result) {
    const Tensor& of = Of(result.tensor);
    Operator op;
    op.name = absl::StrCat("loss of ", of.name);
    op.phase = Phase::kBackward;
    Append(&op.reads, StorageOf(result.tensor));
    if (result.labels != kNone) Append(&op.reads, StorageOf(result.labels));
    op.writes.push_back(AddStorage(op.name, 4, StorageKind::kOther, false, true));
    double bytes = 2 * BytesOf(result.tensor);
    MakeGradient(result.tensor, &op, &bytes);
    op.cost = CostOf(options_.device, bytes / 4, bytes);
    Add(std::move(op));
    AddLeftOver();
  }

  bool HasGradient(TensorId tensor) const {
    if (IsWeight(tensor)) return true;
    return Of(tensor).role == TensorRole::kFeatureMap && follows_[static_cast<size_t>(tensor)];
  }

  // Lets `op` make a gradient of `tensor`, the first or another one. Adds the bytes moved for it to `bytes`.
  void MakeGradient(TensorId tensor, Operator* op, double* bytes) {
    *bytes += BytesOf(tensor);
    if (IsWeight(tensor) && !options_.weights) return;
    StorageId& gradient = result_.gradient_of[static_cast<size_t>(tensor)];
    const Tensor& of = Of(tensor);
    if (gradient == kNone) {
      const bool weight = IsWeight(tensor);
      const bool stays = weight && options_.gradients_stay;
      gradient = AddStorage(absl::StrCat(of.name, ".gradient"), of.bytes,
                            weight ? StorageKind::kWeight : StorageKind::kFeatureMap, stays,
                            stays || (weight && !options_.updates));
      (stays ? op->updates : op->writes).push_back(gradient);
    } else if (options_.accumulation == Accumulation::kInPlace) {
      op->updates.push_back(gradient);
      *bytes += BytesOf(tensor);
    } else {
      const StorageId more = AddStorage(absl::StrCat(of.name, ".gradient.", ++parts_), of.bytes,
                                        IsWeight(tensor) ? StorageKind::kWeight : StorageKind::kFeatureMap);
      op->writes.push_back(more);
      left_over_.emplace_back(more, gradient);
    }
  }

  void AddLeftOver() {
    for (const auto& [more, gradient] : std::exchange(left_over_, {})) {
      Operator op;
      op.name = absl::StrCat("add ", result_.graph.storages[static_cast<size_t>(more)].name);
      op.phase = Phase::kBackward;
      op.reads = {more};
      op.updates = {gradient};
      const auto bytes = static_cast<double>(result_.graph.storages[static_cast<size_t>(more)].bytes);
      op.cost = CostOf(options_.device, bytes / 4, 3 * bytes);
      Add(std::move(op));
    }
  }

  void Backward(size_t index) {
    const Layer& layer = network_.layers[index];
    Operator op;
    op.name = absl::StrCat(layer.name, ".backward");
    op.phase = Phase::kBackward;
    double bytes = 0;
    for (TensorId tensor : layer.outputs) {
      const StorageId gradient = result_.gradient_of[static_cast<size_t>(tensor)];
      if (gradient == kNone) continue;
      Append(&op.reads, gradient);
      bytes += BytesOf(tensor);
    }
    if (op.reads.empty()) return;  // no result depends on it
    for (TensorId tensor : layer.gradient_reads) {
      Append(&op.reads, StorageOf(tensor));
      bytes += BytesOf(tensor);
    }
    int gradients = 0;
    for (const auto* list : {&layer.inputs, &layer.weights}) {
      for (TensorId tensor : *list) {
        if (!HasGradient(tensor)) continue;
        MakeGradient(tensor, &op, &bytes);
        ++gradients;
      }
    }
    if (gradients == 0) return;
    for (const TensorPair& pair : layer.gradient_in_place) TakeOver(pair, &op);
    op.cost = CostOf(options_.device, layer.gradient_flops * gradients,
                     layer.gradient_moved == kOperandsOnce ? bytes : layer.gradient_moved);
    op.workspace = layer.gradient_workspace;
    op.heavy = layer.heavy;
    result_.backward_of[index] = Add(std::move(op));
    AddLeftOver();
  }

  void TakeOver(const TensorPair& pair, Operator* op) const {
    const StorageId from = result_.gradient_of[static_cast<size_t>(pair.from)];
    const StorageId to = result_.gradient_of[static_cast<size_t>(pair.to)];
    const bool made = std::find(op->writes.begin(), op->writes.end(), to) != op->writes.end();
    if (from != kNone && made && Of(pair.to).bytes <= Of(pair.from).bytes) op->in_place.push_back({from, to});
  }

  void Updates() {
    for (size_t i = 0; i < network_.tensors.size(); ++i) {
      const Tensor& of = network_.tensors[i];
      if (of.role != TensorRole::kWeight || result_.gradient_of[i] == kNone) continue;
      Operator op;
      op.name = absl::StrCat("update ", of.name);
      op.phase = Phase::kUpdate;
      op.reads = {result_.gradient_of[i]};
      op.updates = {result_.storage_of[i]};
      for (int state = 1; state <= options_.optimizer_states; ++state) {
        op.updates.push_back(
            AddStorage(absl::StrCat(of.name, ".state", state), of.bytes, StorageKind::kWeight, true, true));
      }
      const auto bytes = static_cast<double>(of.bytes);
      op.cost = CostOf(options_.device, bytes, bytes * (1 + 2 * static_cast<double>(op.updates.size())));
      Add(std::move(op));
    }
  }

  const Network& network_;
  const TrainingOptions& options_;
  Training result_;
  std::vector<bool> follows_;  // by tensor: whether it depends on a weight
  // A further gradient, and the gradient to which it is added.
  std::vector<std::pair<StorageId, StorageId>> left_over_;
  int64_t parts_ = 0;
};

}  // namespace

absl::StatusOr<Training> MakeTraining(const Network& network, const TrainingOptions& options) {
  return Maker(network, options).Run();
}

absl::StatusOr<Graph> TrainingGraph(const Network& network, const TrainingOptions& options) {
  absl::StatusOr<Training> training = MakeTraining(network, options);
  if (!training.ok()) return training.status();
  return std::move(training->graph);
}

}  // namespace hotpack::remat
