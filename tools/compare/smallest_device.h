// The smallest device on which an allocator serves a recording: the measure of "will it fit". The most that an
// allocator holds without a limit is larger, because it keeps memory that it would give back on a full device, at the
// price of driver calls and waits.
#pragma once

#include <cstdint>
#include <functional>

namespace hotpack {

inline constexpr uint64_t kDeviceStep = uint64_t{2} << 20;  // bytes: the driver's granularity of physical memory

// Returns the least multiple of kDeviceStep that is at least `bytes`.
constexpr uint64_t WholeSteps(uint64_t bytes) { return (bytes + kDeviceStep - 1) / kDeviceStep * kDeviceStep; }

struct SmallestDevice {
  uint64_t bytes = 0;             // a multiple of kDeviceStep; 0: unknown, or nothing was requested
  uint64_t device_calls = 0;      // calls there that take memory or give it back
  uint64_t synchronizations = 0;  // times that the host waits there for the device
};

// The result of a recording on a device of some size. The counts matter only if it fits.
struct DeviceProbe {
  bool fits = false;
  uint64_t device_calls = 0, synchronizations = 0;
};

// Searches the smallest device by bisection between `live_peak` and the size that suffices, about `held` (bytes, the
// most held without a limit). `probe` plays the recording on a device of so many bytes, and stops where it fails.
//
// To fit is not monotone in the size: what an allocator gives back on a full device changes its later places. The
// result fits, one step less does not, and every size above it that was tried fits. Tried are also the results plus 1,
// 2 and 4 steps. A device between two tried sizes may still be too small.
//
// Returns no bytes if live_peak is 0, or if even four times `held` do not suffice. O(log(held / kDeviceStep)) probes.
SmallestDevice FindSmallestDevice(uint64_t live_peak, uint64_t held,
                                  const std::function<DeviceProbe(uint64_t bytes)>& probe);

}  // namespace hotpack
