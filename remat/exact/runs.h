// From an order of runs alone to a schedule: everything is held exactly from where it is made to its last use before it
// is made again.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "remat/core/schedule.h"
#include "remat/core/values.h"

namespace hotpack::remat {

// `runs`: operators in the order in which they run, some of them several times. No schedule of these runs without
// copies to the host has a lower live peak, but for memory taken over in place, which is done where the sizes are equal
// and the contents used up. Given contents that nothing uses are dropped at once, others after their last use.
// InvalidArgument with one line where a run does not find the contents that it finds in the program, an operator never
// runs, one runs again that may not, or contents to keep are not there at the end. The schedule passes Verify(). O(runs
// · operands). Thread-safe.
absl::StatusOr<Schedule> ScheduleOfRuns(const Graph& graph, const Values& values, const std::vector<OperatorId>& runs);

}  // namespace hotpack::remat
