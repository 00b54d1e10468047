// What is live at the peak of a recording, by the line that asked for it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "profiler/trace_file.h"

namespace hotpack {

// Returns the bytes by id of the blocks that are live at the first moment with the most live memory, each rounded up to
// 512. O(events).
absl::flat_hash_map<uint64_t, uint64_t> LiveAtPeak(const Trace& trace);

struct PeakLine {
  std::string line;   // SourceLine() of the stacks; empty: blocks without one
  std::string stack;  // ReadableStack() of the largest of its blocks
  uint64_t blocks = 0;
  uint64_t bytes = 0;  // each rounded up to 512
};

// Returns the lines, most bytes first, of the first moment with the most live memory. Their bytes add up to the live
// peak. Empty if the recording has no stacks. O(events + stacks).
std::vector<PeakLine> PeakByLine(const TraceFile& file);

}  // namespace hotpack
