// Time over memory of several planners, as a picture: as in the figures of papers on recomputation.
#pragma once

#include <string>
#include <vector>

namespace hotpack {

struct PlotPoint {
  double memory = 0;  // of what the step needs as it is: 0 to 1
  double time = 1;    // times the step's own; ≥ 1
};

struct PlotLine {
  std::string name;
  std::vector<PlotPoint> points;  // from the least memory on
};

// SVG with nothing from elsewhere. Times above `max_time` are left out. O(points). Thread-safe.
std::string PlanPlot(const std::string& title, const std::vector<PlotLine>& lines, double max_time = 2.0);

}  // namespace hotpack
