// A packing instance as a recording of one iteration.
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
  uint64_t gaps = 0;         // a block with a gap is released before it and allocated anew after it
  bool has_offsets = false;  // and alignments, neither of which a recording has
  bool has_alignments = false;
};

// Whether the first line of a file names the columns of a minimalloc CSV.
bool LooksLikeMinimalloc(std::string_view begin);

// Every block is allocated at the beginning of its residency and released at its end, in the order of the clock; at the
// same clock value releases come first, for an interval does not contain its end. A mark at the beginning and at the
// end. `name` stands for the file in errors, which are one line: a block larger than recordings may have. O(n log n).
absl::StatusOr<ImportedInstance> RecordingOf(const NamedInstance& named, const std::string& name);

}  // namespace hotpack
