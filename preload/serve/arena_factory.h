// Makes arenas: engine, device memory, statistics slot and trace file of a context. Resets them after a fork.
#pragma once

#include "profiler/trace_writer.h"
#include "runtime/memory/cuda_driver.h"
#include "runtime/persist/stats_file.h"
#include "runtime/process/arena_table.h"

namespace hotpack {

// Makes the arena of `context`, or returns the one that another thread just made. Null: out of host memory, or the
// table is full.
ContextArena* MakeArena(CUcontext context);

// NewStatsSlot returns a slot of the process's statistics file, null if there is none. NewTrace returns the next trace
// file that HOTPACK_TRACE names, never freed. It returns null if none is named, or if writing fails (which is logged).
// Thread-safe.
StatsSlot* NewStatsSlot();
TraceWriter* NewTrace();

// Returns whether memory of the current context's device that programs copy must be of cuMemAlloc. Without hooks a copy
// between devices goes to the driver as the program has written it. It fails on virtual memory and on memory of pools
// to which a device has no access (docs/hooks.md, Other devices). A rank copies to no other device. Thread-safe. Calls
// the driver once a device.
bool CopiesNeedPlainMemory(const CudaDriver& driver);

// Counts an allocation request that was left to the driver without an arena, in the process's statistics file.
void NoteLeftToDriver();

// Writes the facts of a request that found no memory to that file and counts it (`failed.count` is ignored).
// Thread-safe. No driver call.
void NoteFailedRequest(const FailedRequest& failed);

}  // namespace hotpack
