// Makes a recording longer by repeating its steady step.
#pragma once

#include <cstdint>

#include "profiler/event.h"

namespace hotpack {

// Returns `trace` with its steady step (tools/replay/replay_steps.h) `times` times more, as `hotpack replay --repeat`
// plays it. Blocks that live over steps do so in the repetitions. At the end everything is released, without a mark.
// Returns `trace` unchanged if it has no steady step, or for 0 times. Threads and times of events are lost. O(events).
Trace RepeatSteadyStep(const Trace& trace, uint64_t times);

}  // namespace hotpack
