#include "bench/plans/binarise.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace hotpack::remat {
namespace {

constexpr Bytes kBitsAnElement = 32;
constexpr StorageId kNone = -1;

bool Contains(const std::vector<StorageId>& list, StorageId id) {
  return std::find(list.begin(), list.end(), id) != list.end();
}

class Rewriter {
 public:
  Rewriter(const Graph& graph, const Values& values, const Encoding& encoding)
      : graph_(graph), values_(values), encoding_(encoding), bits_of_(graph.storages.size(), kNone) {}

  Binarised Run() {
    result_.graph.storages = graph_.storages;
    std::vector<int> made(graph_.storages.size());
    for (const Value& value : values_.values) ++made[static_cast<size_t>(value.storage)];
    for (const Value& value : values_.values) {
      if (made[static_cast<size_t>(value.storage)] == 1 && IsMaskBehind(value)) AddBits(value.storage);
    }
    for (size_t i = 0; i < graph_.operators.size(); ++i) Append(i);
    if (!graph_.released_after.empty()) Release();
    return std::move(result_);
  }

 private:
  // Whether the backward pass reads the value, and only its bits.
  bool IsMaskBehind(const Value& value) const {
    const Storage& storage = graph_.storages[static_cast<size_t>(value.storage)];
    if (value.maker < 0 || storage.kept || storage.kind != StorageKind::kFeatureMap ||
        SmallerSize(storage.bytes) >= storage.bytes)
      return false;
    if (graph_.operators[static_cast<size_t>(value.maker)].phase != Phase::kForward) return false;
    bool behind = false;
    for (OperatorId use : value.uses) {
      const Operator& op = graph_.operators[static_cast<size_t>(use)];
      if (op.phase == Phase::kForward) continue;
      if (!Contains(op.masks, value.storage)) return false;
      behind = true;
    }
    return behind;
  }
  static Bytes SmallerSize(Bytes bytes) { return (bytes + kBitsAnElement - 1) / kBitsAnElement; }

  void AddBits(StorageId id) {
    const Storage& storage = graph_.storages[static_cast<size_t>(id)];
    bits_of_[static_cast<size_t>(id)] = static_cast<StorageId>(result_.graph.storages.size());
    result_.graph.storages.push_back(
        {absl::StrCat(storage.name, ".bits"), SmallerSize(storage.bytes), StorageKind::kFeatureMap});
    ++result_.encoded;
  }

  void Append(size_t index) {
    Operator op = graph_.operators[index];
    for (StorageId& mask : op.masks) {
      const StorageId bits = bits_of_[static_cast<size_t>(mask)];
      if (bits == kNone) continue;
      std::replace(op.reads.begin(), op.reads.end(), mask, bits);
      std::erase_if(op.in_place, [mask](const InPlace& pair) { return pair.read == mask; });
      mask = bits;
    }
    const std::vector<StorageId> writes = op.writes;
    result_.graph.operators.push_back(std::move(op));
    result_.from.push_back(static_cast<OperatorId>(index));
    for (StorageId id : writes) {
      if (bits_of_[static_cast<size_t>(id)] != kNone) Encode(id);
    }
  }

  void Encode(StorageId id) {
    const StorageId bits = bits_of_[static_cast<size_t>(id)];
    const std::vector<Storage>& storages = result_.graph.storages;
    const Bytes moved = storages[static_cast<size_t>(id)].bytes + storages[static_cast<size_t>(bits)].bytes;
    Operator op;
    op.name = absl::StrCat("encode ", storages[static_cast<size_t>(id)].name);
    op.cost =
        encoding_.launch + static_cast<Nanoseconds>(std::ceil(static_cast<double>(moved) / encoding_.bytes_per_ns));
    op.reads = {id};
    op.writes = {bits};
    result_.graph.operators.push_back(std::move(op));
    result_.from.push_back(-1);
  }

  // The program releases the bits where it would have released the encoded storage, and that storage after its last
  // use.
  void Release() {
    const std::vector<std::vector<OperatorId>> uses = UsesOf(result_.graph);
    std::vector<OperatorId>& released = result_.graph.released_after;
    std::vector<OperatorId> number;  // by operator before
    for (size_t i = 0, encoded = 0; i < graph_.operators.size(); ++i) {
      number.push_back(static_cast<OperatorId>(i + encoded));
      for (StorageId id : graph_.operators[i].writes) encoded += bits_of_[static_cast<size_t>(id)] != kNone ? 1 : 0;
    }
    const auto moved = [&number](OperatorId op) {
      return op < 0 || op == kNever ? op : number[static_cast<size_t>(op)];
    };
    released.assign(result_.graph.storages.size(), kNever);
    for (size_t id = 0; id < graph_.storages.size(); ++id) {
      released[id] = moved(graph_.released_after[id]);
      if (bits_of_[id] == kNone) continue;
      released[static_cast<size_t>(bits_of_[id])] = released[id];
      released[id] = uses[id].back();
    }
  }

  const Graph& graph_;
  const Values& values_;
  const Encoding& encoding_;
  std::vector<StorageId> bits_of_;  // by storage; kNone: not encoded
  Binarised result_;
};

}  // namespace

Binarised Binarise(const Graph& graph, const Values& values, const Encoding& encoding) {
  return Rewriter(graph, values, encoding).Run();
}

BinarisedPlan PlanByEchoWithBits(const Graph& graph, const Machine& machine, const EchoOptions& options,
                                 const Encoding& encoding) {
  BinarisedPlan whole;
  whole.binarised.graph = graph;
  for (size_t i = 0; i < graph.operators.size(); ++i) whole.binarised.from.push_back(static_cast<OperatorId>(i));
  whole.values = ValuesOf(graph);
  whole.plan = PlanByEcho(graph, whole.values, machine, options);
  BinarisedPlan bits;
  bits.binarised = Binarise(graph, whole.values, encoding);
  if (bits.binarised.encoded == 0) return whole;
  bits.values = ValuesOf(bits.binarised.graph);
  std::vector<bool> may;
  for (OperatorId op : bits.binarised.from)
    may.push_back(op < 0 || options.allowed == nullptr || (*options.allowed)[static_cast<size_t>(op)]);
  EchoOptions of_bits = options;
  of_bits.allowed = &may;
  bits.plan = PlanByEcho(bits.binarised.graph, bits.values, machine, of_bits);
  return bits.plan.outcome.live_peak < whole.plan.outcome.live_peak ? std::move(bits) : std::move(whole);
}

}  // namespace hotpack::remat
