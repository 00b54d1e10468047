#include "remat/chen/cuts.h"

#include <algorithm>
#include <set>

namespace hotpack::remat {
namespace {

OperatorId ForwardEnd(const Graph& graph) {
  const auto end = std::find_if_not(graph.operators.begin(), graph.operators.end(), IsForward);
  return static_cast<OperatorId>(end - graph.operators.begin());
}

// Returns the last operator of the forward pass that uses the value, or its maker if none does.
OperatorId LastWanted(const Value& value, OperatorId end) {
  const auto behind = std::lower_bound(value.uses.begin(), value.uses.end(), end);
  return behind == value.uses.begin() ? value.maker : *(behind - 1);
}

Bytes OutputOf(const Graph& graph, const Operator& op) {
  Bytes sum = 0;
  for (StorageId id : op.writes) sum += graph.storages[static_cast<size_t>(id)].bytes;
  return sum;
}

}  // namespace

std::vector<Cut> NarrowCuts(const Graph& graph, const Values& values, int window) {
  const OperatorId end = ForwardEnd(graph);
  // By operator: bytes that cross behind it. First only the changes of that.
  std::vector<Bytes> over(static_cast<size_t>(end));
  for (const Value& value : values.values) {
    if (value.maker < 0 || value.maker >= end) continue;
    const Bytes bytes = graph.storages[static_cast<size_t>(value.storage)].bytes;
    over[static_cast<size_t>(value.maker)] += bytes;
    over[static_cast<size_t>(LastWanted(value, end))] -= bytes;
  }
  for (size_t i = 1; i < over.size(); ++i) over[i] += over[i - 1];
  std::vector<Cut> cuts;
  for (OperatorId op = 0; op < end; ++op) {
    const auto here = over.begin() + op;
    const auto before = over.begin() + std::max(0, op - window), behind = over.begin() + std::min(end, op + window + 1);
    // 0 is a beginning or an end.
    const bool least = std::all_of(before, behind, [&](Bytes each) { return each >= *here || each == 0; });
    if (least && *here > 0) cuts.push_back({op, {}});
  }
  std::set<std::pair<OperatorId, OperatorId>> open;  // last use, maker
  auto cut = cuts.begin();
  for (OperatorId op = 0; op < end && cut != cuts.end(); ++op) {
    for (ValueId output : values.outputs[static_cast<size_t>(op)]) {
      const OperatorId last = LastWanted(values.values[static_cast<size_t>(output)], end);
      if (last > op) open.emplace(last, op);
    }
    open.erase(open.begin(), open.upper_bound({op, kNever}));
    if (cut->after != op) continue;
    for (const auto& [last, maker] : open) cut->makers.push_back(maker);
    std::sort(cut->makers.begin(), cut->makers.end());
    cut->makers.erase(std::unique(cut->makers.begin(), cut->makers.end()), cut->makers.end());
    ++cut;
  }
  return cuts;
}

std::vector<bool> CandidatesOf(const Graph& graph, const Values& values) {
  std::vector<bool> candidates = SplittingPoints(graph, values);
  if (std::count(candidates.begin(), candidates.end(), true) < 2) candidates.assign(candidates.size(), true);
  return candidates;
}

std::vector<Cut> CutsAt(const std::vector<bool>& candidates) {
  std::vector<Cut> cuts;
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (candidates[i]) cuts.push_back({static_cast<OperatorId>(i), {static_cast<OperatorId>(i)}});
  }
  return cuts;
}

Segments PlanSegments(const Graph& graph, const std::vector<Cut>& cuts, Bytes budget) {
  Segments segments;
  segments.again.assign(graph.operators.size(), false);
  for (size_t i = 0; i < graph.operators.size(); ++i) segments.again[i] = IsForward(graph.operators[i]);
  Bytes temp = 0;
  OperatorId next = 0;
  for (const Cut& cut : cuts) {
    for (; next <= cut.after; ++next) {
      if (IsForward(graph.operators[static_cast<size_t>(next)]))
        temp += OutputOf(graph, graph.operators[static_cast<size_t>(next)]);
    }
    if (temp <= budget) continue;
    segments.y = std::max(segments.y, temp);
    temp = 0;
    for (OperatorId maker : cut.makers) {
      if (!segments.again[static_cast<size_t>(maker)]) continue;
      segments.again[static_cast<size_t>(maker)] = false;
      segments.x += OutputOf(graph, graph.operators[static_cast<size_t>(maker)]);
    }
  }
  return segments;
}

}  // namespace hotpack::remat
