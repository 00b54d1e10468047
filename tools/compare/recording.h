// A recording as policies see it: requests by ordinal, and which part is its iteration with the highest live load.
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
  uint64_t bytes = 0;    // the size of a request; 0: it is released
};

struct PeerRecording {
  std::vector<PeerEvent> events;
  uint32_t requests = 0;
  // The iteration with the highest live load (FindLargestIteration); nothing if there is none.
  std::optional<HotIteration> hot;
  bool marked = false;  // it is a marked one
  std::vector<uint8_t>
      planned;  // by request: it is of the hot iteration or of an earlier one like it, and lives no longer
  // Where that iteration is played: [begin, end) of `events`; empty without one.
  size_t window_begin = 0, window_end = 0;
};

// Requests of no bytes take no memory anywhere and are left out. O(events).
PeerRecording TakeRecording(const Trace& trace);

// The most bytes (each block rounded up to 512) that are live at once during that iteration, of all blocks or only of
// those that are not planned; during the whole recording where there is no iteration. O(events).
uint64_t LivePeakInWindow(const PeerRecording& recording, bool not_planned_only);

}  // namespace hotpack
