#include "remat/core/schedule.h"

namespace hotpack::remat {

Schedule Baseline(const Graph& graph, Release release) {
  const size_t operators = graph.operators.size();
  std::vector<std::vector<StorageId>> dropped_after(operators + 1);  // [0]: before the first one
  const std::vector<std::vector<OperatorId>> uses = UsesOf(graph);
  const bool as_program = release == Release::kAsTheProgram && !graph.released_after.empty();
  for (size_t id = 0; id < graph.storages.size(); ++id) {
    if (graph.storages[id].kept) continue;
    OperatorId last = uses[id].empty() ? kNever : uses[id].back();
    if (as_program) last = graph.released_after[id];
    if (last == kNever) continue;
    if (last < 0 && !graph.storages[id].given) continue;  // has no memory yet
    dropped_after[static_cast<size_t>(last + 1)].push_back(static_cast<StorageId>(id));
  }
  Schedule schedule;
  for (size_t i = 0; i <= operators; ++i) {
    if (i > 0) schedule.actions.push_back({ActionKind::kRun, static_cast<int32_t>(i - 1)});
    for (StorageId id : dropped_after[i]) schedule.actions.push_back({ActionKind::kDrop, id});
  }
  return schedule;
}

}  // namespace hotpack::remat
