#include "tools/need/largest_value.h"

#include <algorithm>
#include <cmath>

namespace hotpack {

std::optional<int64_t> LargestByLine(const std::vector<ValuePoint>& points, uint64_t limit) {
  if (points.size() < 2) return std::nullopt;
  const auto above =
      std::find_if(points.begin(), points.end(), [&](const ValuePoint& point) { return point.needed > limit; });
  const auto second = std::clamp(above, points.begin() + 1, points.end() - 1);
  const ValuePoint &b = *second, &a = *(second - 1);
  if (b.needed <= a.needed) return std::nullopt;
  const double slope = static_cast<double>(b.needed - a.needed) / static_cast<double>(b.value - a.value);
  const double room = static_cast<double>(limit) - static_cast<double>(a.needed);
  const double value = static_cast<double>(a.value) + std::floor(room / slope);
  constexpr double kMax = 1e15;
  if (value < 1 || value > kMax) return std::nullopt;
  return static_cast<int64_t>(value);
}

}  // namespace hotpack
