// How much of each device the process's arenas may take (hotpack_set_limit).
#pragma once

#include <cstdint>

#include "runtime/process/arena_table.h"

namespace hotpack {

inline constexpr int kLimitedDevices = 64;

// The lower of HOTPACK_LIMIT and the one that the process has set. UINT64_MAX: no limit. Both are thread-safe. Devices
// outside [0, kLimitedDevices) have HOTPACK_LIMIT alone.
uint64_t DeviceLimit(int device);
void SetDeviceLimit(int device, uint64_t bytes);  // applies to existing and later arenas

// Returns true if `bytes` more would exceed the limit even after a full trim. The driver is not asked then.
bool BeyondLimit(const ContextArena* arena, uint64_t bytes);

// The same for the current context's arena, under HOTPACK_LIMIT alone: such a request of the driver's own functions
// fails, too. False without an arena.
bool BeyondLimitOption(uint64_t bytes);

}  // namespace hotpack
