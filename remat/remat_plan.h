// One plan for one budget, by any of the planners: what `hotpack plan` answers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "packer/types.h"
#include "remat/core/schedule.h"
#include "remat/core/simulator.h"
#include "remat/planner_list.h"
#include "remat/search/budget_fit.h"

namespace hotpack::remat {

std::optional<RematAlgorithm> PlanAlgorithmFromName(std::string_view name);

struct PlanOptions {
  RematAlgorithm algorithm = RematAlgorithm::kAuto;
  Bytes budget = 0;   // bytes of the arena, weights and all; 0: as many as the step needs as it is
  bool swap = false;  // copies to the host too (auto, search)
  Machine machine = {};
  int64_t time_limit_ns = 10'000'000'000;  // of the search, and of what dqn learns
  uint64_t seed = 1;
};

struct RematPlan {
  std::string algorithm;  // which one's plan it is
  Schedule schedule;
  Outcome outcome;
  Instance instance;  // the arena's blocks
  Placement placement;
  Bytes arena = 0;                   // its height
  int64_t recomputed = 0;            // runs of operators that had run before
  int64_t swapped = 0;               // copies to the host
  Nanoseconds baseline_time = 0;     // of the program as it is
  Nanoseconds lower_bound_time = 0;  // no plan takes less (remat/exact/bounds.h; all_plans.h)
  double seconds = 0;
  std::optional<Decisions> choice;  // of hotpack's own search: to go on from
};

// A plan that passes Verify() and whose packed arena is at most the budget. ResourceExhausted with one line: that the
// budget is below what any plan needs, with that number, or that this planner has found none, with the least arena that
// it has found. `from`, if not null: a plan of this graph for the search to begin with, too. Thread-safe.
absl::StatusOr<RematPlan> MakeRematPlan(const Graph& graph, const PlanOptions& options,
                                        const Decisions* from = nullptr);

// Raises the plan's lower_bound_time to what a quarter of the time limit, or a second at most, can prove. `options` has
// the plan's budget. Thread-safe.
void RaiseLeastTime(const Graph& graph, const PlanOptions& options, RematPlan* plan);

// MakeRematPlan() for many budgets, each with the time limit of `options`. A plan is taken over by all larger budgets,
// so that none is slower than one of a smaller budget; hotpack's own search goes on from the plans of its neighbors. By
// budget, in the order given. Thread-safe.
std::vector<absl::StatusOr<RematPlan>> MakePlans(const Graph& graph, const PlanOptions& options,
                                                 const std::vector<Bytes>& budgets);

}  // namespace hotpack::remat
