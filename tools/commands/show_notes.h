// The part of `hotpack show` about a recording's notes (profiler/notes.h).
#pragma once

#include "nlohmann/json.hpp"
#include "profiler/trace_file.h"

namespace hotpack {

// Prints lines to stdout; none if there are no notes.
void PrintNotes(const TraceFile& file);

// Adds "launches", "ranges" and "stacks" to *object, as far as there are any.
void AddNotesJson(const TraceFile& file, nlohmann::ordered_json* object);

}  // namespace hotpack
