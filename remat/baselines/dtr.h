// Dynamic tensor rematerialization (Kirisame et al. 2021) offline: its heuristic applied to the graph's operators.
#pragma once

#include "absl/status/statusor.h"
#include "remat/core/schedule.h"
#include "remat/core/values.h"

namespace hotpack::remat {

// Returns the schedule of DTR's heuristic. Operators run in the program's order. Where one exceeds `budget` bytes, the
// value with the least h is evicted, repeatedly:
//
//   h = (cost of its operator + costs of the evicted values around it) / (bytes · time since its last use)
//
// "Around it" (e*, the evicted neighborhood) are the values from which it follows, or which follow from it, over
// evicted values. Evicted operands are recomputed, recursively. Values are dropped after their last use. Given values
// stay.
//
// Returns ResourceExhausted if an operator cannot be made to fit, or if the runs exceed `most_runs` times the
// program's. O(evictions · resident values · size of their neighborhoods).
absl::StatusOr<Schedule> ScheduleByDtr(const Graph& graph, const Values& values, Bytes budget, int most_runs = 100);

}  // namespace hotpack::remat
