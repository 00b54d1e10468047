// What the notes of a recording (profiler/notes.h) say of some of its blocks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profiler/trace_file.h"

namespace hotpack {

// Ordinals are of a list of names that grows as they are needed.
struct BlockNotes {
  NameOrdinal range = kNoName;         // the ranges it was asked for in, outermost first: "step / forward"
  NameOrdinal first_kernel = kNoName;  // the first launch that named it
  NameOrdinal last_kernel = kNoName;
  uint32_t launches = 0;        // launches that named it
  NameOrdinal stack = kNoName;  // one line a frame
};

// By entry of `events`: indices of allocations in Trace::events, ascending. A range is that of the request's own
// thread; where no range is open there (a backward thread), those that are open on the thread that opened one last.
// Names are added to *names, each once. O(events + notes).
std::vector<BlockNotes> NotesOfBlocks(const TraceFile& file, const std::vector<uint64_t>& events,
                                      std::vector<std::string>* names);

}  // namespace hotpack
