#include "remat/core/load.h"

#include <algorithm>

namespace hotpack::remat {

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

Bytes LeastMemory(const Graph& graph, bool swap) {
  std::vector<bool> residencies(graph.storages.size());
  Bytes always = 0, most = 0;
  for (size_t id = 0; id < residencies.size(); ++id)
    residencies[id] = !swap && graph.storages[id].given && graph.storages[id].kept;
  for (const Operator& op : graph.operators) {
    // Its contents may be discarded before they are written again.
    for (StorageId id : op.writes) residencies[static_cast<size_t>(id)] = false;
  }
  for (size_t id = 0; id < residencies.size(); ++id) always += residencies[id] ? graph.storages[id].bytes : 0;
  Bytes begin = 0, end = 0;
  for (const Storage& storage : graph.storages) {
    begin += storage.given ? storage.bytes : 0;
    end += storage.kept ? storage.bytes : 0;
  }
  most = std::max(begin, end);
  for (const Operator& op : graph.operators) {
    Bytes needs = always + op.workspace;
    for (const std::vector<StorageId>* list : {&op.reads, &op.writes, &op.updates}) {
      for (StorageId id : *list)
        needs += residencies[static_cast<size_t>(id)] ? 0 : graph.storages[static_cast<size_t>(id)].bytes;
    }
    for (const InPlace& pair : op.in_place) needs -= graph.storages[static_cast<size_t>(pair.made)].bytes;
    most = std::max(most, needs);
  }
  return most;
}

}  // namespace hotpack::remat
