// The part of `hotpack show` about a recording's notes (profiler/notes.h).
#pragma once

#include "nlohmann/json.hpp"
#include "profiler/trace_file.h"
#include "tools/recording/run_course.h"

namespace hotpack {

// Prints the phases of a marked run, growth and spikes; nothing if there are none. AddCourseJson adds "phases",
// "growth" and "spike" (null if there is none).
void PrintCourse(const RunCourse& course);
void AddCourseJson(const RunCourse& course, nlohmann::ordered_json* object);

// Prints lines to stdout; none if there are no notes.
void PrintNotes(const TraceFile& file);

// Adds "launches", "ranges" and "stacks" to *object, as far as there are any.
void AddNotesJson(const TraceFile& file, nlohmann::ordered_json* object);

}  // namespace hotpack
