// The packing instance in a file, for `hotpack pack`, `export` and `verify`.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "packer/csv.h"
#include "packer/stream_edges.h"

namespace hotpack {

struct InstanceInput {
  NamedInstance named;  // `ids` is empty (blocks are then numbered from 0) or has one per block
  std::string what;     // the instance in words
  // Of each block, where a recording has blocks of several streams; else empty.
  BlockStreams streams;
};

// Reads a minimalloc CSV unchanged. Of a recording (any of tools/formats/any_recording.h) takes the last marked
// iteration, else the one that repeats, else all of it. Errors are one line, "FILE:LINE:COLUMN: reason" or as of
// profiler/trace_file.h. A recording without requests is an error. O(length). Thread-safe.
absl::StatusOr<InstanceInput> ReadInstance(const std::string& path);

}  // namespace hotpack
