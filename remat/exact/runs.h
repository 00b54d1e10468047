// Builds a schedule from an order of runs alone. Each value is held exactly from each run that makes it to its last use
// before the next such run.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "remat/core/schedule.h"
#include "remat/core/values.h"

namespace hotpack::remat {

// Returns the schedule of `runs`: operators in the order in which they run, some of them several times. It passes
// Verify(). O(runs · operands). Thread-safe.
//  1. No schedule of these runs without copies to the host has a lower live peak, except by memory taken over in place.
//  2. Memory is taken over in place where the sizes are equal and the operand is used up.
//  3. Given contents that nothing uses are dropped at once, others after their last use.
// Returns InvalidArgument with one line if a run does not find the program's contents, an operator never runs or runs
// again although it may not, or kept contents are missing at the end.
absl::StatusOr<Schedule> ScheduleOfRuns(const Graph& graph, const Values& values, const std::vector<OperatorId>& runs);

}  // namespace hotpack::remat
