// Dynamic tensor rematerialization (Kirisame et al. 2021) offline: what its heuristic would do with the graph's
// operators.
#pragma once

#include "absl/status/statusor.h"
#include "remat/core/schedule.h"
#include "remat/core/values.h"

namespace hotpack::remat {

// Operators run in the program's order. Where one does not fit into `budget` bytes, the value with the least h goes,
// one after the other:
//
//   h = (cost of its operator + costs of the values that have gone around it) / (bytes · time since it was last used)
//
// "Around it" (e*, the evicted neighborhood) are the values from which it follows, or which follow from it, over values
// that have gone. What is needed and has gone is made again, and what that needs. Values go at once after their last
// use; given ones stay. ResourceExhausted if an operator cannot be made to fit, or if there would be more than
// `most_runs` times the program's runs. O(evictions · resident values · size of their neighborhoods).
absl::StatusOr<Schedule> ScheduleByDtr(const Graph& graph, const Values& values, Bytes budget, int most_runs = 100);

}  // namespace hotpack::remat
