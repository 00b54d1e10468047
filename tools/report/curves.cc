#include "tools/report/curves.h"

#include <algorithm>
#include <queue>

#include "profiler/history.h"

namespace hotpack {
namespace {

struct Edge {
  Clock at;
  Bytes change;
};

struct Resident {
  Offset top;
  Clock end;
  bool operator<(const Resident& other) const { return top < other.top; }
};

struct Beginning {
  Clock begin;
  Resident resident;
};

}  // namespace

PlacementCurves CurvesOf(const Instance& instance, const Placement& placement) {
  std::vector<Edge> edges;
  std::vector<Beginning> beginnings;
  for (size_t i = 0; i < instance.blocks.size(); ++i) {
    const Block& block = instance.blocks[i];
    for (const Residency& residency : block.residency) {
      edges.push_back({residency.begin, block.size});
      edges.push_back({residency.end, -block.size});
      beginnings.push_back({residency.begin, {placement.offsets[i] + block.size, residency.end}});
    }
  }
  std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) { return a.at < b.at; });
  std::sort(beginnings.begin(), beginnings.end(),
            [](const Beginning& a, const Beginning& b) { return a.begin < b.begin; });
  PlacementCurves curves;
  std::priority_queue<Resident> resident;  // ended ones are removed when they become the highest
  Bytes load = 0;
  for (size_t i = 0, next = 0; i < edges.size();) {
    const Clock at = edges[i].at;
    for (; i < edges.size() && edges[i].at == at; ++i) load += edges[i].change;
    for (; next < beginnings.size() && beginnings[next].begin == at; ++next) resident.push(beginnings[next].resident);
    while (!resident.empty() && resident.top().end <= at) resident.pop();
    curves.end = at;
    if (i == edges.size()) break;  // the last edge ends everything
    curves.at.push_back(at);
    curves.load.push_back(load);
    curves.top.push_back(resident.empty() ? 0 : resident.top().top);
  }
  return curves;
}

RunCurve CurveOfRun(const Trace& trace, size_t columns) {
  RunCurve curve;
  curve.events = trace.events.size();
  columns = std::min<size_t>(columns, curve.events);
  curve.least.assign(columns, UINT64_MAX);
  curve.most.assign(columns, 0);
  uint64_t live = 0;
  for (uint64_t e = 0; e < curve.events; ++e) {
    const Event& event = trace.events[e];
    const uint64_t bytes = uint64_t{UnitsOf(event.bytes)} * kBlockUnit;
    if (event.kind == EventKind::kAllocate) live += bytes;
    if (event.kind == EventKind::kRelease) live -= bytes;
    const auto column = static_cast<size_t>(e * columns / curve.events);
    curve.least[column] = std::min(curve.least[column], live);
    curve.most[column] = std::max(curve.most[column], live);
  }
  return curve;
}

}  // namespace hotpack
