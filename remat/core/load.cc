#include "remat/core/load.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "remat/core/values.h"

namespace hotpack::remat {
namespace {

void Add(const Graph& graph, StorageId id, int sign, LeastMoment* moment) {
  const Storage& storage = graph.storages[At(id)];
  moment->bytes += sign * storage.bytes;
  (storage.kind == StorageKind::kWeight       ? moment->weights
   : storage.kind == StorageKind::kFeatureMap ? moment->results
                                              : moment->others) += sign * storage.bytes;
}

// Contents that cannot leave from `begin` on, while the operators before `end` run.
struct FixedContents {
  StorageId storage;
  OperatorId begin, end;
};

std::vector<FixedContents> FixedOf(const Graph& graph, bool swap) {
  const auto end = static_cast<OperatorId>(graph.operators.size());
  std::vector<FixedContents> fixed;
  if (graph.released_after.empty()) {
    std::vector<bool> rewritten(graph.storages.size());  // its contents may be discarded before
    for (const Operator& op : graph.operators) {
      for (StorageId id : op.writes) rewritten[At(id)] = true;
    }
    for (size_t id = 0; id < graph.storages.size(); ++id) {
      if (!swap && graph.storages[id].given && graph.storages[id].kept && !rewritten[id])
        fixed.push_back({static_cast<StorageId>(id), 0, end});
    }
    return fixed;
  }
  for (const Value& value : ValuesOf(graph).values) {
    const Storage& storage = graph.storages[At(value.storage)];
    const bool held = storage.held && !storage.movable;
    const bool unique = value.maker < 0 || graph.operators[At(value.maker)].once || storage.held;
    if (!held && (swap || !unique)) continue;
    const OperatorId until = value.left ? end : value.uses.empty() ? value.maker : value.uses.back();
    if (value.maker + 1 < until) fixed.push_back({value.storage, value.maker + 1, until});
  }
  return fixed;
}

// Calls `visit` with the least memory at each operator, in order.
template <typename Visitor>
void ForEachMoment(const Graph& graph, bool swap, Visitor visit) {
  const auto end = static_cast<OperatorId>(graph.operators.size());
  std::vector<std::vector<std::pair<StorageId, int>>> changes(At(end) + 1);
  for (const FixedContents& each : FixedOf(graph, swap)) {
    changes[At(each.begin)].push_back({each.storage, 1});
    changes[At(each.end)].push_back({each.storage, -1});
  }
  std::vector<int> fixed(graph.storages.size());
  LeastMoment now;
  for (OperatorId number = 0; number < end; ++number) {
    for (const auto& [id, by] : changes[At(number)]) fixed[At(id)] += by, Add(graph, id, by, &now);
    const Operator& op = graph.operators[At(number)];
    LeastMoment here = now;
    here.op = number;
    here.own = op.workspace;
    for (const std::vector<StorageId>* list : {&op.reads, &op.writes, &op.updates}) {
      for (StorageId id : *list) {
        here.own += graph.storages[At(id)].bytes;
        if (fixed[At(id)] > 0) Add(graph, id, -1, &here);
      }
    }
    for (const InPlace& pair : op.in_place) here.own -= graph.storages[At(pair.made)].bytes;
    here.bytes += here.own;
    visit(here);
  }
}

}  // namespace

std::vector<Bytes> LoadOf(const std::vector<StorageResidency>& residencies) {
  Clock end = 0;
  for (const StorageResidency& stay : residencies) end = std::max(end, stay.end);
  std::vector<Bytes> load(static_cast<size_t>(end) + 1);
  for (const StorageResidency& stay : residencies) {
    load[static_cast<size_t>(stay.begin)] += stay.bytes;
    load[static_cast<size_t>(stay.end)] -= stay.bytes;
  }
  for (size_t i = 1; i < load.size(); ++i) load[i] += load[i - 1];
  load.pop_back();
  return load;
}

LeastMoment LeastMemoryAt(const Graph& graph, bool swap) {
  LeastMoment begin = {.op = -1}, last = {.op = static_cast<OperatorId>(graph.operators.size())};
  for (size_t id = 0; id < graph.storages.size(); ++id) {
    if (graph.storages[id].away) continue;
    if (graph.storages[id].given) Add(graph, static_cast<StorageId>(id), 1, &begin);
    if (graph.storages[id].kept) Add(graph, static_cast<StorageId>(id), 1, &last);
  }
  LeastMoment most = last.bytes > begin.bytes ? last : begin;
  ForEachMoment(graph, swap, [&most](const LeastMoment& moment) {
    if (moment.bytes > most.bytes) most = moment;
  });
  return most;
}

std::vector<Bytes> LeastByOperator(const Graph& graph, bool swap) {
  std::vector<Bytes> bytes;
  ForEachMoment(graph, swap, [&bytes](const LeastMoment& moment) { bytes.push_back(moment.bytes); });
  return bytes;
}

std::vector<Bytes> WantedByOperator(const Graph& graph, const Values& values) {
  const auto operators = static_cast<OperatorId>(graph.operators.size());
  std::vector<Bytes> wanted(static_cast<size_t>(operators) + 1);
  for (const Value& value : values.values) {
    const OperatorId last = value.left ? operators - 1 : value.uses.empty() ? value.maker : value.uses.back();
    if (last < 0) continue;
    wanted[static_cast<size_t>(std::max(value.maker, 0))] += graph.storages[static_cast<size_t>(value.storage)].bytes;
    wanted[static_cast<size_t>(last) + 1] -= graph.storages[static_cast<size_t>(value.storage)].bytes;
  }
  wanted.pop_back();
  for (size_t i = 1; i < wanted.size(); ++i) wanted[i] += wanted[i - 1];
  for (size_t i = 0; i < wanted.size(); ++i) wanted[i] += graph.operators[i].workspace;
  return wanted;
}

Bytes LeastMemory(const Graph& graph, bool swap) { return LeastMemoryAt(graph, swap).bytes; }

std::string TextOf(const Graph& graph, const LeastMoment& moment) {
  std::string text;
  if (moment.op < 0) {
    text = "at the beginning: ";
  } else if (At(moment.op) == graph.operators.size()) {
    text = "at the end: ";
  } else {
    text = absl::StrCat(graph.operators[At(moment.op)].name, ": ", moment.own, " of its own");
  }
  const char* separator = moment.own > 0 ? ", " : "";
  const auto add = [&](const char* name, Bytes bytes) {
    if (bytes > 0) absl::StrAppend(&text, std::exchange(separator, ", "), name, " ", bytes);
  };
  add("weights and state", moment.weights);
  add("gradients and inputs", moment.others);
  add("results", moment.results);
  return text;
}

}  // namespace hotpack::remat
