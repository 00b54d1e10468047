// Writes a recording in the JSON trace format of Perfetto and Chrome's tracing page.
#pragma once

#include <string>

#include "packer/model_writer.h"
#include "profiler/trace_file.h"

namespace hotpack {

struct ChromeCounts {
  uint64_t blocks = 0, launches = 0, ranges = 0;
  bool times = false;  // false: none are recorded, and one event is one microsecond
};

// Writes live bytes as a counter, each block as an asynchronous slice, and the program's ranges as slices of their
// threads. A launch with known times on the device is a slice of its stream, else an instant of its thread. Process 1
// is the program, process 2 the device. Errors: those of `sink`. O(events + notes).
absl::Status WriteChromeTrace(const TraceFile& file, const TextSink& sink, ChromeCounts* counts);

}  // namespace hotpack
