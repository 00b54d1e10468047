// Whether the saved plan of `hotpack run --plan` pays.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/persist/stats_file.h"
#include "tools/run/run_setup.h"

namespace hotpack {

// The file of --plan before the program starts. Bytes; 0: unknown.
struct PlanBefore {
  bool compared = false;      // a file is named, and it is one file: no pattern
  bool present = false;       // it has a plan
  uint64_t held_without = 0;  // most held by the run that had none
  uint64_t live_without = 0;  // ... and most live
};

PlanBefore ReadPlanBefore(const RunOptions& options);

// After a program that succeeded: keeps the figures of the run without the plan in its file. `stats`: of the process
// with most requests. O(file).
void KeepPlanFigures(const RunOptions& options, const PlanBefore& before, const hotpack_stats& stats);

// Returns the end of the line of `hotpack run`, beginning with "; ": the run held more than the one without the plan,
// or it left no plan. Else empty.
std::string PlanNote(const RunOptions& options, const PlanBefore& before, const hotpack_stats& stats);

}  // namespace hotpack
