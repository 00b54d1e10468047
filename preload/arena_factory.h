// Makes arenas: engine, device memory, statistics slot and trace file of a context. And what a fork does to them.
#pragma once

#include "runtime/arena_table.h"

namespace hotpack {

// Makes the arena of `context` unless another thread just has. Null: out of host memory, or the table is full.
ContextArena* MakeArena(CUcontext context);

// Counts, in the process's statistics file, an allocation request that was left to the driver where there is no arena.
void NoteLeftToDriver();

}  // namespace hotpack
