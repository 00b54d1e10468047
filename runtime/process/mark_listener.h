// Who is told of the program's marks beside the arenas.
#pragma once

#include <atomic>

#include "profiler/event.h"

namespace hotpack {

// Called with kMark, kInterrupt or kResume by hotpack_step, hotpack_interrupt and hotpack_resume; null: nobody. Set
// once, by preload/serve/recorder.cc.
extern std::atomic<void (*)(EventKind)> mark_listener;

}  // namespace hotpack
