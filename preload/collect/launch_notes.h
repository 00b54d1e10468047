// The launch collector (HOTPACK_LAUNCHES): notes in the recording what work was submitted and which live blocks it
// names. docs/collectors.md. Hooks (work_hooks.cc) call it only when it is on.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace hotpack {

class Engine;

// The launch collector is on in this process: asked for, hooks are there, a trace is written.
bool NotesLaunches();

// The launch that was noted for the last call of this thread that submits work, until somebody takes it
// (collector_host.h, launch()).
struct NotedLaunch {
  Engine* engine = nullptr;  // null: none, or taken
  uint64_t ordinal = 0;      // in its recording
};
extern constinit __attribute__((tls_model("initial-exec"))) thread_local NotedLaunch noted_launch;

// Writes a launch to the recordings that it concerns, and leaves it in noted_launch. `words`: what the call was handed;
// those that are addresses of live blocks name them. Throws bad_alloc.
void NoteLaunch(const char* name, CUstream stream, const uint64_t* words, size_t count);

// How the arguments of a watched function name memory and a stream (launch_hooks.cc). Null: it is not noted.
struct NotedWork;
const NotedWork* FindNotedWork(const char* symbol);

}  // namespace hotpack
