// A recording as policies see it: requests by ordinal, and the iteration with the highest live load.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "profiler/event.h"
#include "tools/recording/hot_iteration.h"

namespace hotpack {

struct PeerEvent {
  uint32_t request = 0;  // ordinal in the recording, from 0
  uint32_t stream = 0;   // of the request
  uint64_t bytes = 0;    // the size of a request; 0: a release
};

struct PeerRecording {
  std::vector<PeerEvent> events;
  uint32_t requests = 0;
  // The iteration with the highest live load (FindLargestIteration); nothing if there is none.
  std::optional<HotIteration> hot;
  bool marked = false;  // it is a marked one
  // By request: it is of the hot iteration or of an earlier one like it, and lives no longer.
  std::vector<uint8_t> planned;
  // The events of that iteration: [begin, end) of `events`; empty without one.
  size_t window_begin = 0, window_end = 0;
};

// Requests of no bytes take no memory in any policy, and are omitted. O(events).
PeerRecording TakeRecording(const Trace& trace);

// Returns the most bytes (each block rounded up to 512) live at once during that iteration: of all blocks, or only of
// unplanned ones. Without an iteration: during the whole recording. O(events).
uint64_t LivePeakInWindow(const PeerRecording& recording, bool not_planned_only);

}  // namespace hotpack
