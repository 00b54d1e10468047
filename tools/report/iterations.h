// A run as a row of iterations: which of them repeated the hot one.
#pragma once

#include <cstdint>
#include <vector>

#include "profiler/profile.h"
#include "tools/report/requests.h"

namespace hotpack {

enum class IterationState : uint8_t {
  kDiffers = 0,
  kEqual = 1,  // requests the sizes of the hot iteration, in its order
  kPart = 2,   // the beginning of one at the recording's end, or the end of one at its beginning
};

struct RunIteration {
  uint64_t first_request = 0;  // its ordinal in the run
  uint64_t requests = 0;
  uint64_t first_event = 0;  // an index into Trace::events
  uint64_t end_event = 0;    // where the next one begins
  uint64_t live_peak = 0;    // bytes, each block's rounded up to 512
  IterationState state = IterationState::kDiffers;
  uint64_t longer_lives = 0;  // of an equal one: blocks that lived longer than in the plan
};

// Cuts the run where the hot iteration occurs: greedily from the front, in the rotation of `hot`. The part between two
// occurrences is one iteration that differs, so one extra request makes one of period + 1. In a recording with marks
// the marks cut that part. O(events).
std::vector<RunIteration> CutRun(const Trace& trace, const RecordedRequests& requests, const Profile& hot);

}  // namespace hotpack
