#include "bench/plans/coarsen.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

namespace hotpack::remat {
namespace {

// Operators [begin, end) of a graph as one.
struct Group {
  OperatorId begin, end;
};

class Coarsener {
 public:
  explicit Coarsener(const Graph& graph) : graph_(graph), uses_(UsesOf(graph)) {
    for (size_t op = 0; op < graph.operators.size(); ++op) {
      groups_.push_back({static_cast<OperatorId>(op), static_cast<OperatorId>(op) + 1});
    }
  }

  // Joins the two neighbors that need least memory together, of those the ones that take the least time.
  void Join(size_t operators) {
    std::vector<std::pair<Bytes, Nanoseconds>> costs;  // by group: of it and the next one together
    for (size_t i = 0; i + 1 < groups_.size(); ++i) costs.push_back(CostOf(Joined(i)));
    while (groups_.size() > std::max<size_t>(1, operators)) {
      const size_t at = static_cast<size_t>(std::min_element(costs.begin(), costs.end()) - costs.begin());
      groups_[at] = Joined(at);
      groups_.erase(groups_.begin() + static_cast<std::ptrdiff_t>(at) + 1);
      costs.erase(costs.begin() + static_cast<std::ptrdiff_t>(at));
      if (at > 0) costs[at - 1] = CostOf(Joined(at - 1));
      if (at < costs.size()) costs[at] = CostOf(Joined(at));
    }
  }

  Graph Result(size_t storages) const {
    Graph coarse;
    std::vector<StorageId> as(graph_.storages.size(), -1);
    const std::vector<OperatorId> group_of = GroupOfOperators();
    for (size_t id = 0; id < as.size(); ++id) {
      const Storage& storage = graph_.storages[id];
      const bool alone = !uses_[id].empty() && group_of[At(uses_[id].front())] == group_of[At(uses_[id].back())];
      if (!storage.given && !storage.kept && (alone || uses_[id].empty())) continue;
      as[id] = static_cast<StorageId>(coarse.storages.size());
      coarse.storages.push_back(storage);
      OperatorId released = graph_.released_after.empty() ? kNever : graph_.released_after[id];
      if (released != kNever && released >= 0) released = group_of[At(released)];
      coarse.released_after.push_back(released);
    }
    for (const Group& group : groups_) coarse.operators.push_back(OperatorOf(group, as));
    while (coarse.storages.size() > storages && JoinSmallest(&coarse)) {
    }
    while (coarse.storages.size() > storages) {
      const auto least = std::min_element(coarse.storages.begin(), coarse.storages.end(),
                                          [](const Storage& a, const Storage& b) { return a.bytes < b.bytes; });
      Remove(static_cast<size_t>(least - coarse.storages.begin()), &coarse);
    }
    return coarse;
  }

 private:
  Group Joined(size_t at) const { return {groups_[at].begin, groups_[at + 1].end}; }
  bool IsInside(StorageId id, const Group& group) const {
    const Storage& storage = graph_.storages[At(id)];
    return !storage.given && !storage.kept && uses_[At(id)].front() >= group.begin && uses_[At(id)].back() < group.end;
  }
  template <typename Do>
  void ForEachOperand(const Group& group, Do what) const {
    for (OperatorId op = group.begin; op < group.end; ++op) {
      const Operator& of = graph_.operators[At(op)];
      for (StorageId id : of.reads) what(op, id, true, false);
      for (StorageId id : of.updates) what(op, id, true, true);
      for (StorageId id : of.writes) what(op, id, false, true);
    }
  }
  // The most bytes at once of what only the group touches.
  Bytes Inside(const Group& group) const {
    std::vector<Bytes> change(static_cast<size_t>(group.end - group.begin) + 1);
    std::vector<bool> seen(graph_.storages.size());
    ForEachOperand(group, [&](OperatorId, StorageId id, bool, bool) {
      if (seen[At(id)] || !IsInside(id, group)) return;
      seen[At(id)] = true;
      change[At(uses_[At(id)].front() - group.begin)] += graph_.storages[At(id)].bytes;
      change[At(uses_[At(id)].back() - group.begin) + 1] -= graph_.storages[At(id)].bytes;
    });
    Bytes now = 0, most = 0;
    for (OperatorId op = group.begin; op < group.end; ++op) {
      now += change[At(op - group.begin)];
      most = std::max(most, now + graph_.operators[At(op)].workspace);
    }
    return most;
  }
  std::pair<Bytes, Nanoseconds> CostOf(const Group& group) const {
    Bytes bytes = Inside(group);
    Nanoseconds time = 0;
    std::vector<bool> seen(graph_.storages.size());
    ForEachOperand(group, [&](OperatorId, StorageId id, bool, bool) {
      if (!seen[At(id)] && !IsInside(id, group)) bytes += graph_.storages[At(id)].bytes;
      seen[At(id)] = true;
    });
    for (OperatorId op = group.begin; op < group.end; ++op) time += graph_.operators[At(op)].cost;
    return {bytes, time};
  }
  std::vector<OperatorId> GroupOfOperators() const {
    std::vector<OperatorId> group_of(graph_.operators.size());
    for (size_t g = 0; g < groups_.size(); ++g) {
      for (OperatorId op = groups_[g].begin; op < groups_[g].end; ++op) group_of[At(op)] = static_cast<OperatorId>(g);
    }
    return group_of;
  }
  Operator OperatorOf(const Group& group, const std::vector<StorageId>& as) const {
    struct Touch {
      bool reads_first, changes;
    };
    std::map<StorageId, Touch> touched;
    Operator op = {.name = graph_.operators[At(group.begin)].name,
                   .workspace = Inside(group),
                   .phase = graph_.operators[At(group.begin)].phase};
    ForEachOperand(group, [&](OperatorId, StorageId id, bool reads, bool changes) {
      if (as[At(id)] < 0) return;
      const auto [found, added] = touched.try_emplace(as[At(id)], Touch{reads, changes});
      found->second.changes = found->second.changes || changes;
    });
    for (const auto& [id, touch] : touched) {
      (!touch.changes ? op.reads : touch.reads_first ? op.updates : op.writes).push_back(id);
    }
    for (OperatorId each = group.begin; each < group.end; ++each) {
      const Operator& of = graph_.operators[At(each)];
      op.cost += of.cost;
      op.once = op.once || of.once;
      op.random = op.random || of.random;
    }
    return op;
  }

  // Joins the two smallest storages that all operators treat alike. False: there are none.
  static bool JoinSmallest(Graph* graph) {
    std::vector<std::vector<std::pair<OperatorId, int>>> touched(graph->storages.size());
    for (size_t op = 0; op < graph->operators.size(); ++op) {
      const Operator& of = graph->operators[op];
      int way = 0;
      for (const std::vector<StorageId>* list : {&of.reads, &of.updates, &of.writes}) {
        ++way;
        for (StorageId id : *list) touched[At(id)].push_back({static_cast<OperatorId>(op), way});
      }
    }
    const auto signature = [&](size_t id) {
      const Storage& of = graph->storages[id];
      return std::tuple(of.given, of.kept, of.held, of.movable, of.away, graph->released_after[id], touched[id]);
    };
    std::map<decltype(signature(0)), std::vector<size_t>> alike;
    for (size_t id = 0; id < touched.size(); ++id) alike[signature(id)].push_back(id);
    Bytes least = INT64_MAX;
    size_t into = 0, gone = 0;
    for (auto& [same, ids] : alike) {
      if (ids.size() < 2) continue;
      std::stable_sort(ids.begin(), ids.end(),
                       [&](size_t a, size_t b) { return graph->storages[a].bytes < graph->storages[b].bytes; });
      const Bytes bytes = graph->storages[ids[0]].bytes + graph->storages[ids[1]].bytes;
      if (bytes < least) least = bytes, into = std::min(ids[0], ids[1]), gone = std::max(ids[0], ids[1]);
    }
    if (least == INT64_MAX) return false;
    graph->storages[into].bytes = least;
    Remove(gone, graph);
    return true;
  }
  static void Remove(size_t gone, Graph* graph) {
    graph->storages.erase(graph->storages.begin() + static_cast<std::ptrdiff_t>(gone));
    graph->released_after.erase(graph->released_after.begin() + static_cast<std::ptrdiff_t>(gone));
    for (Operator& op : graph->operators) {
      for (std::vector<StorageId>* list : {&op.reads, &op.updates, &op.writes}) {
        std::erase(*list, static_cast<StorageId>(gone));
        for (StorageId& id : *list) id -= At(id) > gone ? 1 : 0;
      }
    }
  }

  const Graph& graph_;
  const std::vector<std::vector<OperatorId>> uses_;
  std::vector<Group> groups_;
};

}  // namespace

Graph Coarsen(const Graph& graph, size_t operators, size_t storages) {
  Coarsener coarsener(graph);
  coarsener.Join(operators);
  return coarsener.Result(storages);
}

}  // namespace hotpack::remat
