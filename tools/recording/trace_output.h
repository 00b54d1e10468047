// Recordings to files, by the name of the file.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "profiler/event.h"
#include "profiler/notes.h"

namespace hotpack {

// Writes `trace` (whose releases have their allocations before them) and its notes (in the order that Notes promises,
// blocks live where a launch names them) to `path`: as event CSV, without the notes, where the name ends in ".csv",
// else as a trace file that says it began at `began_ns` since 1970 and names no program. What is there stays until the
// new file is complete (tools/cli/file_sink.h). An empty path is standard output. Errors are one line, "PATH: reason".
// O(events).
absl::Status WriteRecording(const Trace& trace, const Notes& notes, uint64_t began_ns, const std::string& path);

}  // namespace hotpack
