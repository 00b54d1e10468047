// A run as a row of iterations: which of them were the hot one again, and which were not.
#pragma once

#include <cstdint>
#include <vector>

#include "profiler/profile.h"
#include "tools/report/requests.h"

namespace hotpack {

enum class IterationState : uint8_t {
  kDiffers = 0,
  kEqual = 1,  // asks for the sizes of the hot iteration, in its order
  kPart = 2,   // the beginning of one, where the recording ends, or the end of one, where it begins
};

struct RunIteration {
  uint64_t first_request = 0;  // its ordinal in the run
  uint64_t requests = 0;
  uint64_t first_event = 0;  // an index into Trace::events
  uint64_t end_event = 0;    // where the next one begins
  uint64_t live_peak = 0;    // bytes, each block's rounded up to 512
  IterationState state = IterationState::kDiffers;
  uint64_t longer_lives = 0;  // of an equal one: blocks that lived for longer than the plan has it
};

// The run cut where the hot iteration occurs: greedily from the front, in the rotation of `hot`. What lies between two
// occurrences is one iteration that differs, so a request too many makes one of period + 1; where the recording has
// marks, as many as they say. O(events).
std::vector<RunIteration> CutRun(const Trace& trace, const RecordedRequests& requests, const Profile& hot);

}  // namespace hotpack
