// Listener for iteration marks, in addition to the engines.
#pragma once

#include <atomic>

#include "profiler/event.h"

namespace hotpack {

// hotpack_step, hotpack_interrupt and hotpack_resume call it with kMark, kInterrupt or kResume; null: no listener. Set
// once, by preload/serve/recorder.cc.
extern std::atomic<void (*)(EventKind)> mark_listener;

}  // namespace hotpack
