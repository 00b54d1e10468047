// A recording made longer: its steady step, played again and again.
#pragma once

#include <cstdint>

#include "profiler/event.h"

namespace hotpack {

// `trace` with its steady step (tools/replay/replay_steps.h) `times` times more, as `hotpack replay --repeat` plays it:
// blocks that live over steps do so in the repetitions, and everything is released at the end, without a mark. The same
// `trace` if it has no steady step, or with 0 times. Threads and times of the events are not kept. O(events).
Trace RepeatSteadyStep(const Trace& trace, uint64_t times);

}  // namespace hotpack
