// The driver's facts about its first device. Queried in a process of its own: a driver may hang or abort.
#pragma once

namespace hotpack::check {

// The simulated device's name (simgpu/driver/device.cc).
inline constexpr char kSimulatedName[] = "hotpack simulated device";

// Writes an object to stdout: "device" and "versions", or "reason" if there is no device. Returns the exit status: 0
// with a device, 1 without.
int PrintDeviceFacts();

}  // namespace hotpack::check
