#include "remat/baselines/memonger.h"

#include <algorithm>
#include <cmath>

#include "remat/baselines/fastest.h"
#include "remat/chen/segments.h"

namespace hotpack::remat {
namespace {

int64_t ForwardOperators(const Graph& graph) {
  return std::count_if(graph.operators.begin(), graph.operators.end(),
                       [](const Operator& op) { return op.phase == Phase::kForward; });
}

}  // namespace

std::vector<bool> MemongerSegments(const Graph& graph, int segments, int m) {
  std::vector<bool> again(graph.operators.size());
  const int64_t operators = ForwardOperators(graph);
  int64_t index = 0;
  for (size_t i = 0; i < again.size(); ++i) {
    if (graph.operators[i].phase != Phase::kForward) continue;
    const int64_t segment = index * segments / operators;
    const bool last = (index + 1) * segments / operators != segment;
    again[i] = segment < m && !last;
    ++index;
  }
  return again;
}

absl::StatusOr<Schedule> ScheduleByMemonger(const Graph& graph, const Values& values, Bytes budget,
                                            const Machine& machine) {
  Fastest fastest(graph, budget, machine);
  const int root = std::max(1, static_cast<int>(std::lround(std::sqrt(static_cast<double>(ForwardOperators(graph))))));
  for (const int segments : {root, std::max(1, root / 2), 2 * root}) {
    for (int m = 0; m <= segments; ++m) {
      const std::vector<bool> again = MemongerSegments(graph, segments, m);
      fastest.Add(BuildSchedule(graph, values, DropForward(graph, values, again), machine, &again).schedule);
    }
  }
  return fastest.Take();
}

}  // namespace hotpack::remat
