#include "remat/files/update_parts.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"

namespace hotpack::remat {
namespace {

using Json = nlohmann::ordered_json;

// Disjoint sets of storages.
class Sets {
 public:
  explicit Sets(size_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), 0); }
  StorageId Of(StorageId id) {
    while (parent_[At(id)] != id) id = parent_[At(id)] = parent_[At(parent_[At(id)])];
    return id;
  }
  void Join(StorageId a, StorageId b) { parent_[At(Of(a))] = Of(b); }

 private:
  std::vector<StorageId> parent_;
};

// One optimizer's update. Members return false, or nothing, if it is not divisible.
class Update {
 public:
  Update(const Json& document, const Graph& graph, const absl::flat_hash_map<std::string, StorageId>& ids)
      : document_(document), graph_(graph), ids_(ids), sets_(graph.storages.size()) {}

  std::optional<DivisibleUpdate> Read(const Json& optimizer) {
    const Json range = optimizer.value("operators", Json());
    if (!optimizer.is_object() || !optimizer.value("whole", Json("unknown")).is_null()) return std::nullopt;
    if (!range.is_array() || range.size() != 2 || !range[0].is_number_unsigned() || !range[1].is_number_unsigned())
      return std::nullopt;
    if (range[0] >= range[1] || range[1] > graph_.operators.size()) return std::nullopt;
    update_.begin = range[0].get<OperatorId>();
    update_.end = range[1].get<OperatorId>();
    std::vector<StorageId> parameters;
    for (const Json& slice : optimizer.value("slices", Json::array())) {
      if (!slice.is_object()) return std::nullopt;
      const std::optional<StorageId> parameter = Named(slice.value("parameter", Json()));
      if (!parameter) return std::nullopt;
      parameters.push_back(*parameter);
      if (const auto gradient = Named(slice.value("gradient", Json()))) sets_.Join(*gradient, *parameter);
      for (const Json& name : slice.value("state", Json::array())) {
        if (const auto state = Named(name)) sets_.Join(*state, *parameter);
      }
    }
    for (OperatorId op = update_.begin; op < update_.end; ++op) {
      if (!JoinOperands(op)) return std::nullopt;
    }
    Number(parameters);
    if (update_.parts < 2 || !IsDivisible()) return std::nullopt;
    return std::move(update_);
  }

 private:
  std::optional<StorageId> Named(const Json& name) const {
    const auto found = name.is_string() ? ids_.find(name.get<std::string>()) : ids_.end();
    return found == ids_.end() ? std::nullopt : std::optional(found->second);
  }

  // Returns the storage of {"t": 12}.
  std::optional<StorageId> TensorOf(const Json& argument) const {
    if (!argument.is_object() || !argument.contains("t") || !argument["t"].is_number_unsigned()) return std::nullopt;
    const auto tensors = document_.find("tensors");
    const auto number = argument["t"].get<size_t>();
    if (tensors == document_.end() || !tensors->is_array() || number >= tensors->size()) return std::nullopt;
    const Json& tensor = (*tensors)[number];
    return tensor.is_array() && !tensor.empty() ? Named(tensor[0]) : std::nullopt;
  }

  // Joins what an operator needs together. One without a call and without cost, such as an input, is no obstacle.
  bool JoinOperands(OperatorId number) {
    const Json& json = document_.at("operators").at(At(number));
    const auto found = json.find("call");
    if (found == json.end()) return graph_.operators[At(number)].cost == 0 && JoinAll(number);
    std::vector<std::vector<StorageId>> lists;
    for (const char* key : {"args", "results"}) {
      for (const Json& argument : found->value(key, Json::array())) {
        if (!argument.is_array()) continue;
        std::vector<StorageId> list;
        for (const Json& element : argument) {
          if (const auto id = TensorOf(element)) list.push_back(*id);
        }
        if (list.size() == argument.size() && !list.empty()) lists.push_back(std::move(list));
      }
    }
    if (lists.empty()) return JoinAll(number);
    for (const std::vector<StorageId>& list : lists) {
      if (list.size() != lists.front().size()) return false;
      for (size_t i = 0; i < list.size(); ++i) sets_.Join(list[i], lists.front()[i]);
    }
    return true;
  }

  bool JoinAll(OperatorId number) {
    const Operator& op = graph_.operators[At(number)];
    StorageId first = -1;
    for (const std::vector<StorageId>* list : {&op.reads, &op.writes, &op.updates}) {
      for (StorageId id : *list) first < 0 ? void(first = id) : sets_.Join(id, first);
    }
    return true;
  }

  void Number(const std::vector<StorageId>& parameters) {
    absl::flat_hash_map<StorageId, int32_t> numbers;
    for (StorageId id : parameters) {
      if (numbers.try_emplace(sets_.Of(id), update_.parts).second) ++update_.parts;
    }
    update_.part_of.assign(graph_.storages.size(), -1);
    for (size_t id = 0; id < update_.part_of.size(); ++id) {
      const auto found = numbers.find(sets_.Of(static_cast<StorageId>(id)));
      if (found != numbers.end()) update_.part_of[id] = found->second;
    }
  }

  // Whether an operator with parts changes nothing else, and the others run before all of them.
  bool IsDivisible() const {
    std::vector<bool> read(graph_.storages.size());  // by operators with parts
    for (OperatorId number = update_.begin; number < update_.end; ++number) {
      const Operator& op = graph_.operators[At(number)];
      const auto has_part = [this](StorageId id) { return update_.part_of[At(id)] >= 0; };
      bool has = false;
      for (const std::vector<StorageId>* list : {&op.reads, &op.writes, &op.updates})
        has = has || std::any_of(list->begin(), list->end(), has_part);
      for (const std::vector<StorageId>* changed : {&op.writes, &op.updates}) {
        for (StorageId id : *changed) {
          if (has ? !has_part(id) : read[At(id)]) return false;
        }
      }
      for (StorageId id : op.reads) read[At(id)] = read[At(id)] || has;
    }
    return true;
  }

  const Json& document_;
  const Graph& graph_;
  const absl::flat_hash_map<std::string, StorageId>& ids_;
  Sets sets_;
  DivisibleUpdate update_;
};

}  // namespace

std::vector<DivisibleUpdate> ReadUpdates(const Json& document, const Graph& graph) {
  std::vector<DivisibleUpdate> updates;
  const auto optimizers = document.find("optimizers");
  if (optimizers == document.end() || !optimizers->is_array()) return updates;
  absl::flat_hash_map<std::string, StorageId> ids;
  for (size_t id = 0; id < graph.storages.size(); ++id) ids[graph.storages[id].name] = static_cast<StorageId>(id);
  for (const Json& optimizer : *optimizers) {
    if (auto update = Update(document, graph, ids).Read(optimizer)) updates.push_back(*std::move(update));
  }
  std::sort(updates.begin(), updates.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
  const auto overlap =
      std::adjacent_find(updates.begin(), updates.end(), [](const auto& a, const auto& b) { return a.end > b.begin; });
  if (overlap != updates.end()) updates.clear();
  return updates;
}

}  // namespace hotpack::remat
