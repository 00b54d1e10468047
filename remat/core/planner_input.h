// What a planner plans: one signature for all planners but hotpack's own search.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "packer/types.h"
#include "remat/core/graph.h"
#include "remat/core/schedule.h"
#include "remat/core/simulator.h"
#include "remat/core/values.h"

namespace hotpack::remat {

struct PlannerInput {
  const Graph& graph;
  const Values& values;  // of the graph
  Machine machine;
  uint64_t seed = 1;
  int64_t time_limit_ns = 0;  // for planners that learn, or try many plans
};

// A planner: returns a schedule whose live bytes are at most `budget`, where the planner bounds them. An error with one
// line: it has none. Thread-safe.
using PlannerFunction = absl::StatusOr<Schedule> (*)(const PlannerInput& input, Bytes budget);

}  // namespace hotpack::remat
