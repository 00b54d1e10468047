// The functions of all planners but hotpack's own search, which keeps state between budgets (remat/remat_plan.cc).
#pragma once

#include "remat/core/planner_input.h"
#include "remat/planner_list.h"

namespace hotpack::remat {

// PlanWithChen() and so on, each a PlannerFunction.
#define HOTPACK_PLANNER(planner, name, in_auto, copies, by_budget) \
  absl::StatusOr<Schedule> PlanWith##planner(const PlannerInput& input, Bytes budget);
HOTPACK_REMAT_PLANNERS(HOTPACK_PLANNER)
#undef HOTPACK_PLANNER

// The planner's function; null: kAuto, kSearch.
PlannerFunction FunctionOf(RematAlgorithm algorithm);

}  // namespace hotpack::remat
