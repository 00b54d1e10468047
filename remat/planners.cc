#include "remat/planners.h"

#include <cstddef>
#include <utility>

#include "remat/baselines/dtr.h"
#include "remat/baselines/echo.h"
#include "remat/baselines/memonger.h"
#include "remat/baselines/superneurons.h"
#include "remat/baselines/tflms.h"
#include "remat/chen/plans.h"
#include "remat/core/schedule_builder.h"
#include "remat/dqn/dqn.h"
#include "remat/exact/knapsack.h"

namespace hotpack::remat {

absl::StatusOr<Schedule> PlanWithChen(const PlannerInput& input, Bytes budget) {
  return ScheduleByChen(input.graph, input.values, budget, input.machine);
}

// Echo has one plan, whatever the budget.
absl::StatusOr<Schedule> PlanWithEcho(const PlannerInput& input, Bytes) {
  const EchoPlan plan = PlanByEcho(input.graph, input.values, input.machine);
  return BuildSchedule(input.graph, input.values, plan.ways, input.machine, &plan.again).schedule;
}

absl::StatusOr<Schedule> PlanWithDtr(const PlannerInput& input, Bytes budget) {
  return ScheduleByDtr(input.graph, input.values, budget);
}

absl::StatusOr<Schedule> PlanWithKnapsack(const PlannerInput& input, Bytes budget) {
  return ScheduleByKnapsack(input.graph, input.values, budget, {.machine = input.machine});
}

absl::StatusOr<Schedule> PlanWithDqn(const PlannerInput& input, Bytes budget) {
  DqnOptions options;
  options.machine = input.machine;
  options.learning.seed = input.seed;
  options.learning.time_limit_ns = input.time_limit_ns;
  absl::StatusOr<DqnPlan> plan = PlanByDqn(input.graph, input.values, budget, options);
  if (!plan.ok()) return plan.status();
  return std::move(plan->schedule);
}

absl::StatusOr<Schedule> PlanWithMemonger(const PlannerInput& input, Bytes budget) {
  return ScheduleByMemonger(input.graph, input.values, budget, input.machine);
}

absl::StatusOr<Schedule> PlanWithSuperNeurons(const PlannerInput& input, Bytes budget) {
  return ScheduleBySuperNeurons(input.graph, input.values, budget, input.machine);
}

absl::StatusOr<Schedule> PlanWithTflms(const PlannerInput& input, Bytes budget) {
  return ScheduleByTflms(input.graph, input.values, budget, input.machine, input.time_limit_ns);
}

PlannerFunction FunctionOf(RematAlgorithm algorithm) {
  static constexpr PlannerFunction kFunctions[] = {nullptr,  // kAuto
#define PlanWithSearch nullptr
#define HOTPACK_PLANNER(planner, name, in_auto, copies, by_budget) PlanWith##planner,
                                                   HOTPACK_REMAT_PLANNERS(HOTPACK_PLANNER)
#undef HOTPACK_PLANNER
#undef PlanWithSearch
  };
  return kFunctions[static_cast<size_t>(algorithm)];
}

}  // namespace hotpack::remat
