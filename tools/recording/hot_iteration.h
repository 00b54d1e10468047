// The hot iteration of a recording, for `hotpack pack` and `hotpack show`.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "profiler/event.h"
#include "profiler/profile.h"

namespace hotpack {

struct HotIteration {
  Profile profile;
  Period period;
  uint64_t end = 0;  // requests of the recording (not interrupted ones) up to the end of its last occurrence
};

// Returns the ordinals of the requests (not interrupted ones) at which a marked iteration begins. The last entry ends
// the last iteration. Omits iterations without requests. Empty: there is none.
std::vector<uint64_t> MarkedIterations(const Trace& trace);

// Returns the last marked iteration; nothing if there is none. O(requests).
std::optional<HotIteration> MarkedIteration(const Trace& trace);

// Returns the iteration detected without the marks; nothing if none repeats. Requests outside an iteration (an
// evaluation, for example) may end a recording: up to a quarter of it is skipped. O(requests).
std::optional<HotIteration> DetectedIteration(const Trace& trace);

// Returns the iteration with the highest live load (all live blocks, each rounded up to 512). The report shows it and
// comparisons name it, because it determines the most held in a run. Of equally high ones the last.
//   - With marks: one of the marked iterations.
//   - Without: the detected one (DetectedIteration), or a higher stretch of the run between two places with little live
//     memory, if another stretch has as many requests. An example is a training step of varying sizes before an
//     evaluation that repeats.
// Nothing if there is neither. O(events · log).
struct LargestIteration {
  HotIteration hot;
  bool marked = false;
};
std::optional<LargestIteration> FindLargestIteration(const Trace& trace);

// Returns the instance to pack when nothing repeats: every block of the recording, resident from its allocation to its
// release (or the end), on the clock of the recording.
Instance WholeRecording(const Trace& trace);

}  // namespace hotpack
