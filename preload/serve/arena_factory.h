// Makes arenas: engine, device memory, statistics slot and trace file of a context. And what a fork does to them.
#pragma once

#include "profiler/trace_writer.h"
#include "runtime/persist/stats_file.h"
#include "runtime/process/arena_table.h"

namespace hotpack {

// Makes the arena of `context` unless another thread just has. Null: out of host memory, or the table is full.
ContextArena* MakeArena(CUcontext context);

// A slot of the process's statistics file, null if there is none; and the next trace file that HOTPACK_TRACE names,
// never freed, null if it names none or it cannot be written (which is said). Thread-safe.
StatsSlot* NewStatsSlot();
TraceWriter* NewTrace();

// Counts, in the process's statistics file, an allocation request that was left to the driver where there is no arena.
void NoteLeftToDriver();

}  // namespace hotpack
