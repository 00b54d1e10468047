// How the memory of a run goes from iteration to iteration: its phases, what grows, what rises above the rest.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "profiler/trace_file.h"

namespace hotpack {

// A stretch of the recording. Bytes are sums of live sizes, each rounded up to 512.
struct RunStretch {
  uint64_t first_event = 0, end_event = 0;  // indices into Trace::events
  uint64_t requests = 0;                    // interrupted ones too
  uint64_t live_begin = 0;                  // at its first event
  uint64_t live_peak = 0;
};

struct RunPhase {
  std::string name;
  uint64_t iterations = 0;  // 0: it is no iteration
  uint64_t live_peak = 0;
};

// Live memory at the ends of iterations that rises again and again.
struct MemoryGrowth {
  uint64_t bytes = 0;       // an iteration, on average
  uint64_t iterations = 0;  // over so many
  uint64_t blocks = 0;      // of an iteration, in the middle: live until the last iteration ends. 0: none is in most
  std::string where;        // the line that asked for most of their bytes (SourceLine); empty: no stacks
};

// The highest stretch, where it is well above the iterations in the middle.
struct MemorySpike {
  std::string where;  // "iteration 12", "the part before the first iteration", ...
  uint64_t live_peak = 0;
  uint64_t usual = 0;   // bytes: the median of the iterations' peaks
  uint64_t others = 0;  // further iterations that are well above it
};

struct RunCourse {
  bool marked = false;                 // by the program; false: as detected, where the recording repeats
  std::vector<RunStretch> iterations;  // empty: none are marked and none repeats
  std::vector<RunPhase> phases;
  bool growth_known = false;  // there are enough iterations to tell
  std::optional<MemoryGrowth> growth;
  std::optional<MemorySpike> spike;
};

// Cuts the recording at its marks, else where the iteration that is found repeats. Growth needs 10 complete iterations,
// a spike 4. O(events · log).
RunCourse CourseOf(const TraceFile& file);

// Returns growth and spike as sentences with a full stop; empty: there is neither.
std::vector<std::string> CourseSentences(const RunCourse& course);

}  // namespace hotpack
