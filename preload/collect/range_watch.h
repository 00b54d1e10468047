// Ranges that the program names (NVTX, hotpack_range_push): recorded, and compared with the patterns of
// HOTPACK_ITERATION_RANGE and HOTPACK_INTERRUPT_RANGE.
//
// 1. The begin of a matching range, and a matching mark, mark an iteration. Within a matching push/pop range, on any
//    thread, they do not: nested ranges of one pattern are one iteration.
// 2. Start/end ranges may overlap: each begin is an iteration.
// 3. Every matching range interrupts from its begin to its end. Interruptions nest and overlap as pairs of
//    hotpack_interrupt and hotpack_resume do, over all threads.
// 4. A pop without a push on its thread and domain does nothing. A thread's end closes its open ranges.
#pragma once

#include <cstdint>

#include "profiler/notes.h"

namespace hotpack {

class Engine;

// Handles one edge. `name`: null as empty. `id`: of kStart and kEnd; of kPush and kPop the domain, 0: the default one.
// Returns the level of kPush and kPop, from 0; -1: nothing to pop. Costs a load and a branch if there are neither
// patterns nor a recording. Throws bad_alloc; then nothing has changed, except that a note may be missing.
int WatchRange(RangeKind kind, uint64_t id, const char* name);

// Registers the engine of a new arena, before other threads know the arena. From then on the engine gets edges and
// interruptions, and is interrupted now if interrupt ranges are open.
//  - First recording of the process: it gets the edges from before. Of more than 4096 edges it gets those of ranges
//    that are open now.
//  - Later recordings: they get the begins of ranges that are open now.
// Out of host memory: the engine gets nothing.
void TellOfRanges(Engine* engine) noexcept;
// Unregisters the engine of an ended context.
void ForgetRangesOf(const Engine* engine);

// Writes one line to stderr for each pattern that no range of this process matched. Call at the end of the process.
void WarnOfUnmatchedRanges();

// In a forked child: closes all ranges.
void ForgetRangesAfterFork();

}  // namespace hotpack
