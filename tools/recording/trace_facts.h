// Counts the contents of a recording.
#pragma once

#include <cstdint>
#include <vector>

#include "profiler/event.h"

namespace hotpack {

struct TraceFacts {
  uint64_t events = 0;
  uint64_t requests = 0;
  uint64_t releases = 0;
  uint64_t marks = 0;
  uint64_t bytes = 0;      // sum of the requested bytes
  uint64_t live_peak = 0;  // largest sum of live sizes, each rounded up to 512
  uint64_t live_end = 0;   // the same at the end
  uint64_t streams = 0;    // different ones
  uint64_t threads = 0;
  uint64_t async = 0;        // requests through cuMemAllocAsync
  uint64_t duration_ns = 0;  // latest time − earliest one; 0 if times are not recorded
};

TraceFacts CountFacts(const Trace& trace);  // O(events)

}  // namespace hotpack
