#include "remat/networks/device.h"

#include <algorithm>
#include <cmath>

namespace hotpack::remat {

Nanoseconds CostOf(const Device& device, double flops, double bytes) {
  constexpr double kMax = 9007199254740992.0;  // 2^53
  const double arithmetic = flops / (device.flops_per_ns * device.flops_part);
  const double memory = bytes / (device.bytes_per_ns * device.bytes_part);
  const double sum = static_cast<double>(device.launch) + std::round(std::max(arithmetic, memory));
  return static_cast<Nanoseconds>(std::min(sum, kMax));
}

}  // namespace hotpack::remat
