// A recording played on the real engine, on a device that only counts: what hotpack's arena would hold.
#pragma once

#include <cstdint>

#include "profiler/event.h"
#include "tools/compare/recording.h"

namespace hotpack {

struct EngineReplay {
  uint64_t reserved_peak = 0;    // bytes: most chunks held at once, in the whole run
  uint64_t reserved_window = 0;  // ... during the recording's iteration; reserved_peak where there is none
  uint64_t reserved_steady = 0;  // ... since the steady iteration began (docs/statistics.md); 0: there was none
  uint64_t device_calls = 0;     // as the peers' are counted: calls that take or give back memory
  bool out_of_memory = false;    // of `capacity`: at the request `failed_request` for so many bytes
  uint64_t failed_request = 0;
  uint64_t failed_bytes = 0;
};

// Plays events as they were recorded, marks included, on an arena with chunks of 2 MiB, as `hotpack run --simulate`
// does. Plans come in logical time (EngineOptions::logical_time), so the same recording has the same result on every
// machine. `recording` is TakeRecording(trace); capacity: bytes, 0: no limit. About 0.2 microseconds an event, and at
// most some kLogicalPlanLimitNs of computing for each plan.
EngineReplay ReplayOnEngine(const Trace& trace, const PeerRecording& recording, uint64_t capacity);

}  // namespace hotpack
