// Plays a recording on the real engine, on a device that only counts: what hotpack's arena would hold.
#pragma once

#include <cstdint>
#include <vector>

#include "profiler/event.h"
#include "runtime/memory/device_memory.h"
#include "tools/compare/recording.h"

namespace hotpack {

// Between two marks, and before the first one.
struct EngineIteration {
  uint64_t requests = 0, planned = 0;     // planned: served by script or envelope
  uint64_t held_peak = 0, live_peak = 0;  // bytes
  uint64_t plans = 0;                     // so far
};

struct EngineReplay {
  uint64_t reserved_peak = 0;                    // bytes: most chunks held at once, in the whole run
  uint64_t reserved_window = 0;                  // ... during the recording's iteration; reserved_peak without one
  uint64_t reserved_steady = 0;                  // ... since the steady iteration (docs/statistics.md); 0: none
  uint64_t device_calls = 0;                     // counted as the peers': calls that take or return memory
  uint64_t synchronizations = 0;                 // waits of the host for the whole device
  uint64_t creates = 0, maps = 0, accesses = 0;  // ... cuMemCreate, cuMemMap and cuMemSetAccess among them
  bool out_of_memory = false;                    // of `capacity`, at the request `failed_request` for `failed_bytes`
  uint64_t failed_request = 0;
  uint64_t failed_bytes = 0;
  std::vector<EngineIteration> iterations;
  uint64_t planning_ns = 0;  // processor time of the planner's thread
};

// Plays the recorded events, marks included, on an arena with chunks of 2 MiB, as `hotpack run --simulate` does. What
// the arena cannot serve is the driver's to serve, in chunks of its own, after a trim of the arena. Plans
// come in logical time (EngineOptions::logical_time), so the result is the same on every machine.
// `recording` is TakeRecording(trace); capacity: bytes, 0: no limit. Takes about 0.2 microseconds an event, and at most
// about kLogicalPlanLimitNs of computing for each plan. `extents`: how large
// its handles may be. `envelopes`: EngineOptions::envelopes.
EngineReplay ReplayOnEngine(const Trace& trace, const PeerRecording& recording, uint64_t capacity,
                            const ExtentLimits& extents = {}, bool envelopes = true);

}  // namespace hotpack
