#include "remat/core/schedule.h"

#include <utility>

namespace hotpack::remat {

void ReleaseHostCopies(const Graph& graph, Schedule* schedule) {
  std::vector<Action>& actions = schedule->actions;
  std::vector<bool> read(graph.storages.size());
  for (size_t id = 0; id < read.size(); ++id) read[id] = graph.storages[id].away;  // needed at the end
  std::vector<bool> removed(actions.size()), last(actions.size());
  for (size_t i = actions.size(); i-- > 0;) {
    const Action& action = actions[i];
    if (action.kind == ActionKind::kRun) continue;
    const size_t id = At(action.target);
    if (action.kind == ActionKind::kPrefetch && !read[id]) last[i] = read[id] = true;
    if (action.kind == ActionKind::kForget) removed[i] = true;
    if (action.kind != ActionKind::kOffload) continue;
    removed[i] = !read[id] && !(graph.storages[id].held && graph.storages[id].movable);
    read[id] = false;
  }
  std::vector<Action> kept;
  kept.reserve(actions.size());
  for (size_t i = 0; i < actions.size(); ++i) {
    if (removed[i]) continue;
    kept.push_back(std::move(actions[i]));
    if (last[i]) kept.push_back({ActionKind::kForget, kept.back().target});
  }
  actions = std::move(kept);
}

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
