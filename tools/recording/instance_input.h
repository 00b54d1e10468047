// The packing instance in a file: what `hotpack pack`, `export` and `verify` take.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "packer/csv.h"

namespace hotpack {

struct InstanceInput {
  NamedInstance named;  // `ids` is empty (blocks are then numbered from 0) or has one a block
  std::string what;     // the instance in words
};

// Reads a minimalloc CSV as it is, and of an event CSV or trace file the last marked iteration, else the one that
// repeats, else all of it. Errors are one line, "FILE:LINE:COLUMN: reason" or as of profiler/trace_file.h; a recording
// without requests is one. O(length). Thread-safe.
absl::StatusOr<InstanceInput> ReadInstance(const std::string& path);

}  // namespace hotpack
