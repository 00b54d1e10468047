// How much of each device the process's arenas may take (hotpack_set_limit).
#pragma once

#include <cstdint>

#include "runtime/process/arena_table.h"

namespace hotpack {

inline constexpr int kLimitedDevices = 64;

// UINT64_MAX: no limit. Both are thread-safe; devices outside [0, kLimitedDevices) have none.
uint64_t DeviceLimit(int device);
void SetDeviceLimit(int device, uint64_t bytes);  // of arenas that are there, and of later ones

// `bytes` more would be beyond the limit, whatever is given back first: not even the driver is asked.
bool BeyondLimit(const ContextArena* arena, uint64_t bytes);

}  // namespace hotpack
