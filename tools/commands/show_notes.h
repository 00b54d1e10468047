// What `hotpack show` says of the notes in a recording (profiler/notes.h).
#pragma once

#include "nlohmann/json.hpp"
#include "profiler/trace_file.h"

namespace hotpack {

// Lines on stdout; none if there are no notes.
void PrintNotes(const TraceFile& file);

// "launches", "ranges" and "stacks" in *object, where there are any.
void AddNotesJson(const TraceFile& file, nlohmann::ordered_json* object);

}  // namespace hotpack
