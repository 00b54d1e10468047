// Listener for iteration marks, in addition to the engines.
#pragma once

#include <atomic>

#include "profiler/event.h"

namespace hotpack {

// hotpack_step, hotpack_expect_steps, hotpack_interrupt and hotpack_resume call it with kMark, kExpect, kInterrupt or
// kResume; null: no listener. Set once, by preload/serve/recorder.cc.
extern std::atomic<void (*)(EventKind)> mark_listener;

// hotpack_expect_steps was called: for arenas and recordings made later.
extern std::atomic<bool> marks_expected;

}  // namespace hotpack
