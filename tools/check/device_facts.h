// What the driver says of its first device. Asked in a process of its own: a driver may hang or abort.
#pragma once

namespace hotpack::check {

// The device's name that the simulated device has (simgpu/driver/device.cc).
inline constexpr char kSimulatedName[] = "hotpack simulated device";

// Writes an object to stdout: either "device" and "versions", or "reason": why there is none. Returns the exit status:
// 0 with a device, 1 without.
int PrintDeviceFacts();

}  // namespace hotpack::check
