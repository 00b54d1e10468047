// The notes of a recording (profiler/notes.h) about some of its blocks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profiler/trace_file.h"

namespace hotpack {

// Ordinals refer to a list of names that grows as needed.
struct BlockNotes {
  NameOrdinal range = kNoName;         // the ranges in which it was requested, outermost first: "step / forward"
  NameOrdinal first_kernel = kNoName;  // the first launch that named it
  NameOrdinal last_kernel = kNoName;
  uint32_t launches = 0;        // launches that named it
  NameOrdinal stack = kNoName;  // one line a frame, as ReadableStack() has it
};

// Returns the notes by entry of `events`: indices of allocations in Trace::events, ascending. The range is that of the
// request's thread. If that thread has none open (a backward thread), those of the thread that opened one last.
// Adds names to *names, each once. O(events + notes).
std::vector<BlockNotes> NotesOfBlocks(const TraceFile& file, const std::vector<uint64_t>& events,
                                      std::vector<std::string>* names);

}  // namespace hotpack
