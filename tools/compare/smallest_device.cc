#include "tools/compare/smallest_device.h"

#include <algorithm>
#include <map>

namespace hotpack {
namespace {

// Sizes are counted in steps. Remembers each probe.
class Search {
 public:
  explicit Search(const std::function<DeviceProbe(uint64_t)>& probe) : probe_(probe) {}

  bool Fits(uint64_t steps) {
    const auto known = tried_.find(steps);
    return (known != tried_.end() ? known->second : tried_[steps] = probe_(steps * kDeviceStep)).fits;
  }

  // Returns the least size in (low, high] by bisection. `low` does not fit, `high` does.
  uint64_t Bisect(uint64_t low, uint64_t high) {
    while (high - low > 1) {
      const uint64_t middle = low + (high - low) / 2;
      (Fits(middle) ? high : low) = middle;
    }
    return high;
  }

  SmallestDevice Result(uint64_t steps) {
    const DeviceProbe& probe = tried_.at(steps);
    return {steps * kDeviceStep, probe.device_calls, probe.synchronizations};
  }

 private:
  const std::function<DeviceProbe(uint64_t)>& probe_;
  std::map<uint64_t, DeviceProbe> tried_;
};

}  // namespace

SmallestDevice FindSmallestDevice(uint64_t live_peak, uint64_t held,
                                  const std::function<DeviceProbe(uint64_t bytes)>& probe) {
  if (live_peak == 0) return {};
  Search search(probe);
  const uint64_t least = WholeSteps(live_peak) / kDeviceStep;
  uint64_t low = least - 1;  // less than what is live
  uint64_t high = std::max(least, WholeSteps(held) / kDeviceStep);
  const uint64_t limit = high * 4;
  while (!search.Fits(high)) {
    if (high >= limit) return {};
    low = high;
    high = std::min(limit, high + high / 8 + 1);
  }
  const uint64_t sufficient = high;
  for (;;) {
    const uint64_t found = search.Bisect(low, high);
    uint64_t failed = 0;
    for (const uint64_t more : {1, 2, 4}) {
      if (found + more < sufficient && !search.Fits(found + more)) failed = found + more;
    }
    if (failed == 0) return search.Result(found);
    low = failed;
    high = sufficient;
  }
}

}  // namespace hotpack
