// Plots time over memory of several planners, as papers on recomputation do.
#pragma once

#include <string>
#include <vector>

namespace hotpack {

struct PlotPoint {
  double memory = 0;  // relative to the unchanged step: 0 to 1
  double time = 1;    // relative to the unchanged step; ≥ 1
};

struct PlotLine {
  std::string name;
  std::vector<PlotPoint> points;  // by increasing memory
};

// Returns a self-contained SVG. Omits times above `max_time`. O(points). Thread-safe.
std::string PlanPlot(const std::string& title, const std::vector<PlotLine>& lines, double max_time = 2.0);

}  // namespace hotpack
