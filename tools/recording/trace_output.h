// Writes recordings to files, in the format of the file's name.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "profiler/event.h"
#include "profiler/notes.h"

namespace hotpack {

// Writes `trace` and its notes to `path`. Every release has an earlier allocation. The notes are in the order that
// Notes promises, and blocks are live where a launch names them.
//  - If the name ends in ".csv": as event CSV, without the notes.
//  - Else as a trace file that began at `began_ns` since 1970 and names no program.
// The old file stays until the new one is complete (tools/cli/file_sink.h). An empty path is standard output. Errors
// are one line, "PATH: reason". O(events).
absl::Status WriteRecording(const Trace& trace, const Notes& notes, uint64_t began_ns, const std::string& path);

}  // namespace hotpack
