// One signature for all planners but hotpack's own search, which keeps state between budgets (remat/remat_plan.cc).
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "packer/types.h"
#include "remat/core/graph.h"
#include "remat/core/schedule.h"
#include "remat/core/simulator.h"
#include "remat/core/values.h"
#include "remat/planner_list.h"

namespace hotpack::remat {

struct PlannerInput {
  const Graph& graph;
  const Values& values;  // of the graph
  Machine machine;
  uint64_t seed = 1;
  int64_t time_limit_ns = 0;  // for planners that learn
};

// PlanWithChen() and so on: a schedule whose live bytes are at most `budget`, where the planner bounds them. An error
// with one line: it has none. Thread-safe.
#define HOTPACK_PLANNER(planner, name, in_auto, copies, by_budget) \
  absl::StatusOr<Schedule> PlanWith##planner(const PlannerInput& input, Bytes budget);
HOTPACK_REMAT_PLANNERS(HOTPACK_PLANNER)
#undef HOTPACK_PLANNER

// The planner's function; null: kAuto, kSearch.
using PlannerFunction = absl::StatusOr<Schedule> (*)(const PlannerInput& input, Bytes budget);
PlannerFunction FunctionOf(RematAlgorithm algorithm);

}  // namespace hotpack::remat
