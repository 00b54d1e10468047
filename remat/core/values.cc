#include "remat/core/values.h"

namespace hotpack::remat {

Values ValuesOf(const Graph& graph) {
  Values result;
  std::vector<ValueId> current(graph.storages.size(), -1);
  const auto make = [&](StorageId id, OperatorId maker) {
    if (current[static_cast<size_t>(id)] >= 0)
      result.values[static_cast<size_t>(current[static_cast<size_t>(id)])].overwritten = maker;
    current[static_cast<size_t>(id)] = static_cast<ValueId>(result.values.size());
    result.values.push_back({id, maker, {}});
    return current[static_cast<size_t>(id)];
  };
  for (size_t id = 0; id < graph.storages.size(); ++id) {
    if (graph.storages[id].given) make(static_cast<StorageId>(id), -1);
  }
  for (size_t i = 0; i < graph.operators.size(); ++i) {
    const Operator& op = graph.operators[i];
    const auto number = static_cast<OperatorId>(i);
    std::vector<ValueId>& inputs = result.inputs.emplace_back();
    std::vector<ValueId>& outputs = result.outputs.emplace_back();
    for (const std::vector<StorageId>* used : {&op.reads, &op.updates}) {
      for (StorageId id : *used) inputs.push_back(current[static_cast<size_t>(id)]);
    }
    for (ValueId value : inputs) result.values[static_cast<size_t>(value)].uses.push_back(number);
    for (const std::vector<StorageId>* changed : {&op.writes, &op.updates}) {
      for (StorageId id : *changed) outputs.push_back(make(id, number));
    }
  }
  for (size_t id = 0; id < graph.storages.size(); ++id) {
    if (graph.storages[id].kept && !graph.storages[id].away)
      result.values[static_cast<size_t>(current[id])].left = true;
  }
  for (size_t v = 0; v < result.values.size(); ++v) {
    Value& value = result.values[v];
    value.first_gap = static_cast<GapId>(result.gaps.size());
    const Storage& storage = graph.storages[static_cast<size_t>(value.storage)];
    const bool held = storage.held && !storage.movable;
    OperatorId after = value.maker;
    const auto add = [&](OperatorId before) {
      result.gaps.push_back({static_cast<ValueId>(v), held ? before - 1 : after, before});
      after = before;
    };
    for (OperatorId use : value.uses) add(use);
    if (value.left) add(static_cast<OperatorId>(graph.operators.size()));
  }
  return result;
}

}  // namespace hotpack::remat
