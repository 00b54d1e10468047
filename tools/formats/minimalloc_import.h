// Converts a packing instance to a recording of one iteration.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "packer/csv.h"
#include "profiler/event.h"

namespace hotpack {

struct ImportedInstance {
  Trace trace;
  uint64_t allocations = 0;
  uint64_t gaps = 0;         // a block with a gap is released before it and allocated again after it
  bool has_offsets = false;  // and alignments: a recording has neither
  bool has_alignments = false;
};

// Returns whether the first line of a file names the columns of a minimalloc CSV.
bool LooksLikeMinimalloc(std::string_view begin);

// Allocates every block at the beginning of its residency and releases it at its end, in the order of the clock. At the
// same clock value releases come first, because an interval does not contain its end. Adds a mark at the beginning and
// at the end. `name` stands for the file in errors, which are one line: a block larger than recordings allow. O(n log
// n).
absl::StatusOr<ImportedInstance> RecordingOf(const NamedInstance& named, const std::string& name);

}  // namespace hotpack
