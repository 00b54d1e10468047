// Ranges that the program names (NVTX, hotpack_range_push): noted in the recordings, and compared with the patterns of
// HOTPACK_ITERATION_RANGE and HOTPACK_INTERRUPT_RANGE.
//
// What marks an iteration: the begin of a matching range, and a matching mark; but not within a push/pop range that
// matches, be it on another thread. So nested ranges of one pattern are one iteration. Start/end ranges may overlap:
// each begin is an iteration. What interrupts: every matching range, from its begin to its end; they nest and overlap
// as pairs of hotpack_interrupt and hotpack_resume do, over all threads. A pop without a push on its thread and domain
// does nothing. A thread that ends with ranges open ends them.
#pragma once

#include <cstdint>

#include "profiler/notes.h"

namespace hotpack {

class Engine;

// One edge. `name`: null as empty. `id`: of kStart and kEnd; of kPush and kPop the domain, 0: the default one. The
// level of kPush and kPop, from 0; -1: nothing to pop. A load and a branch where neither patterns nor a recording are
// wanted. Throws bad_alloc, with nothing changed but, perhaps, a note not written.
int WatchRange(RangeKind kind, uint64_t id, const char* name);

// An arena has been made and nobody else knows it yet: from now on its engine is told of edges and interruptions. If it
// records, the edges from before the first recording are noted in that one (of more than 4096 those of ranges that are
// open now), and the begins of ranges that are open now in a later one. It is interrupted if interrupt ranges are open
// now. No host memory: it is told of nothing.
void TellOfRanges(Engine* engine) noexcept;
// Its context is gone.
void ForgetRangesOf(const Engine* engine);

// One line on stderr for a pattern that no range of this process matched. At the end of the process.
void WarnOfUnmatchedRanges();

// In the child of a fork: no range is open there.
void ForgetRangesAfterFork();

}  // namespace hotpack
