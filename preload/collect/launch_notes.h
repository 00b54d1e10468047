// The launch collector (HOTPACK_LAUNCHES): records submitted work and the live blocks that it names.
// docs/collectors.md. Hooks (work_hooks.cc) call it only when it is on.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace hotpack {

class Engine;

// Returns true if the launch collector is on in this process: requested, with hooks, and with a trace.
bool NotesLaunches();

// The launch noted for this thread's last call that submits work, until it is taken (collector_host.h, launch()).
struct NotedLaunch {
  Engine* engine = nullptr;  // null: none, or taken
  uint64_t ordinal = 0;      // in its recording
};
extern constinit __attribute__((tls_model("initial-exec"))) thread_local NotedLaunch noted_launch;

// Writes a launch to the recordings that it concerns, and to noted_launch. `words`: the call's arguments; those that
// are addresses of live blocks name them. Throws bad_alloc.
void NoteLaunch(const char* name, CUstream stream, const uint64_t* words, size_t count);

// Returns how the arguments of a watched function name memory and a stream (launch_hooks.cc). Null: it is not noted.
struct NotedWork;
const NotedWork* FindNotedWork(const char* symbol);

}  // namespace hotpack
