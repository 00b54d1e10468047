// Makes one plan for one budget by any of the planners. `hotpack plan` prints the result.
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
#include "remat/search/budget_fit.h"

namespace hotpack::remat {

enum class RematAlgorithm {
  // The fastest of the search and the other planners, without dqn. Planners that copy to the host take part if `swap`.
  kAuto,
  kSearch,        // hotpack's own (remat/search/search.h)
  kChen,          // the fastest plan of Chen's searches that fits (remat/chen/plans.h)
  kEcho,          // Echo's one plan, if it fits (remat/baselines/echo.h)
  kDtr,           // DTR's heuristic offline (remat/baselines/dtr.h)
  kKnapsack,      // saved results as a knapsack (remat/exact/knapsack.h)
  kDqn,           // a deep Q-network (remat/dqn/dqn.h); copies to the host
  kMemonger,      // remat/baselines/memonger.h
  kSuperNeurons,  // remat/baselines/superneurons.h; copies to the host
  kTflms,         // remat/baselines/tflms.h; copies to the host
};
std::optional<RematAlgorithm> PlanAlgorithmFromName(std::string_view name);
inline constexpr const char* kRematAlgorithmNames =
    "auto, search, chen, echo, dtr, knapsack, dqn, memonger, superneurons, tflms";

struct PlanOptions {
  RematAlgorithm algorithm = RematAlgorithm::kAuto;
  // Bytes of the arena, weights included. 0: as much as the unmodified step needs.
  Bytes budget = 0;
  // Allows copies to the host (auto, search).
  bool swap = false;
  Machine machine = {};
  int64_t time_limit_ns = 10'000'000'000;  // of the search, and of dqn's training
  uint64_t seed = 1;
};

struct RematPlan {
  std::string algorithm;  // the planner that made the plan
  Schedule schedule;
  Outcome outcome;
  Instance instance;  // the arena's blocks
  Placement placement;
  Bytes arena = 0;                   // its height
  int64_t recomputed = 0;            // reruns of operators
  int64_t swapped = 0;               // copies to the host
  Nanoseconds baseline_time = 0;     // of the unmodified program
  Nanoseconds lower_bound_time = 0;  // no plan takes less time (remat/exact/bounds.h)
  double seconds = 0;
  std::optional<Decisions> choice;  // of hotpack's own search, as a start for further searches
};

// Returns a plan that passes Verify() and whose packed arena is at most the budget. Thread-safe. Otherwise returns
// ResourceExhausted with one line: either that the budget is below the need of any plan, with that number, or that this
// planner found no plan, with the smallest arena that it found.
absl::StatusOr<RematPlan> MakeRematPlan(const Graph& graph, const PlanOptions& options);

// The same for several budgets, each with the time limit of `options`. The results are in the order of `budgets`.
// Larger budgets adopt the plans of smaller ones, so none is slower than a smaller budget's. hotpack's own search
// continues from the plans of neighboring budgets. Thread-safe.
std::vector<absl::StatusOr<RematPlan>> MakePlans(const Graph& graph, const PlanOptions& options,
                                                 const std::vector<Bytes>& budgets);

}  // namespace hotpack::remat
