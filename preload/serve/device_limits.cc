#include "preload/serve/device_limits.h"

#include <algorithm>
#include <atomic>

#include "preload/process/current_scope.h"
#include "preload/process/driver_access.h"
#include "preload/process/options.h"

namespace hotpack {
namespace {

// Kept as the complement, so that zeroed memory means no limit.
constinit std::atomic<uint64_t> taken_off[kLimitedDevices] = {};

bool Has(int device) { return device >= 0 && device < kLimitedDevices; }

}  // namespace

uint64_t DeviceLimit(int device) {
  return std::min(GetOptions().limit, Has(device) ? ~taken_off[device].load() : UINT64_MAX);
}

void SetDeviceLimit(int device, uint64_t bytes) {
  if (!Has(device)) return;
  taken_off[device].store(~bytes);
  Arenas().ForEach([&](ContextArena* arena) {
    if (arena->memory->device() == device) arena->memory->SetLimit(DeviceLimit(device));
  });
}

bool BeyondLimit(const ContextArena* arena, uint64_t bytes) {
  const uint64_t limit = DeviceLimit(arena->memory->device());
  if (limit == UINT64_MAX || arena->memory->Fixed()) return false;
  const EngineUsage usage = arena->engine->Usage();
  return bytes > limit || usage.held + bytes > limit;
}

bool BeyondLimitOption(uint64_t bytes) {
  if (GetOptions().limit == UINT64_MAX) return false;
  const CudaDriver* driver = Driver();
  const ContextArena* arena = driver != nullptr ? Arenas().Find(CurrentContext(*driver)) : nullptr;
  return arena != nullptr && BeyondLimit(arena, bytes);
}

}  // namespace hotpack
