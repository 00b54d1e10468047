// Recordings to files, by the name of the file.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "profiler/event.h"

namespace hotpack {

// Writes `trace` (whose releases have their allocations before them) to `path`: as event CSV where the name ends in
// ".csv", else as a trace file that says it began at `began_ns` since 1970 and names no program. What is there stays
// until the new file is complete (tools/file_sink.h). An empty path is standard output. Errors are one line, "PATH:
// reason". O(events).
absl::Status WriteRecording(const Trace& trace, uint64_t began_ns, const std::string& path);

}  // namespace hotpack
