// The hot iteration of a recording, as `hotpack pack` and `hotpack show` need it.
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
  uint64_t end = 0;  // requests of the recording (interrupted ones do not count) up to the end of its last occurrence
};

// What the marks of a recording say: ordinals of requests (interrupted ones do not count) where a marked iteration
// begins; the last entry ends the last one. Iterations without requests are left out. Empty: there is none.
std::vector<uint64_t> MarkedIterations(const Trace& trace);

// The last marked iteration; nothing if there is none. O(requests).
std::optional<HotIteration> MarkedIteration(const Trace& trace);

// The iteration that is found without looking at the marks; nothing if none repeats. A recording may end with
// requests that are no part of one (an evaluation, say): up to a quarter of it is passed over. O(requests).
std::optional<HotIteration> DetectedIteration(const Trace& trace);

// The iteration with the highest live load (all live blocks, each rounded up to 512): what a page shows and a
// comparison names, since the most held in a run is decided there. Of equally high ones the last.
//   - with marks, one of the marked iterations;
//   - without, the one that is found (DetectedIteration), or a higher stretch of the run between two places where
//     little is live, if another stretch has as many requests: a training step whose sizes vary, before an evaluation
//     that repeats.
// Nothing if there is neither. O(events · log).
struct LargestIteration {
  HotIteration hot;
  bool marked = false;
};
std::optional<LargestIteration> FindLargestIteration(const Trace& trace);

// What is packed when nothing repeats: every block of the recording, resident from its allocation to its release (or
// the end), on the clock of the recording.
Instance WholeRecording(const Trace& trace);

}  // namespace hotpack
