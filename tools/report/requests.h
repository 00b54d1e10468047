// The requests of a recording in order, with the lifetime of each block.
#pragma once

#include <cstdint>
#include <vector>

#include "profiler/event.h"

namespace hotpack {

inline constexpr uint64_t kNever = UINT64_MAX;

struct RecordedRequest {
  uint64_t event = 0;         // an index into Trace::events
  uint64_t release = kNever;  // index of the release; kNever if there is none
  uint32_t age = 0;           // in requests, as profiler/history.h counts them; 0 if not released
  bool interrupted = false;   // made between interrupt and resume: it has no ordinal
};

struct RecordedRequests {
  std::vector<RecordedRequest> all;  // in the order of the recording
  std::vector<uint32_t> monitored;   // by ordinal: an index into `all`, those that were not interrupted
};

// Every release of the trace has an earlier allocation (profiler/trace_file.h). O(events).
RecordedRequests CollectRequests(const Trace& trace);

}  // namespace hotpack
