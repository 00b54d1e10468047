// Plans for a recorded step of which optimizer state may be on the host between steps: all of it, or that of the first
// slices of the update. What begins the step on the host ends it there. So that state takes no memory while the passes
// run, and each of its slices is copied in and out around its part of the update.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "remat/core/graph.h"
#include "remat/remat_plan.h"

namespace hotpack::remat {

enum class StatePlaces : uint8_t {
  kAuto,    // the part on the host is chosen: the one with the fastest plan found
  kDevice,  // none is on the host between steps
  kHost,    // all is
};

// Runs tasks, and waits for them.
using RunTasks = std::function<void(const std::vector<std::function<void()>>& tasks)>;
// ... one after the other.
void RunInTurn(const std::vector<std::function<void()>>& tasks);

struct PlanWithState {
  RematPlan plan;
  Graph graph;             // which the plan is of: with Storage::away
  size_t host_slices = 0;  // the state of so many slices is on the host between steps
};

// MakeRematPlan() for a graph with its updates in `slices` (remat/core/update_slices.h). kAuto bounds times of plans
// for so many slices as leave what any plan needs within the budget. It tries the two of the least bounds, of equal
// ones with fewer slices, or only the first one if the other's bound is much higher. Where they have no plan, it tries
// the next ones. Two plans are made at a time, by `run_all`, which runs tasks and waits for them, at the same time if
// it can. Each has a third of the time limit, and then the rest of it. The bound is of plans with the same state on the
// host. Without state, copies or a budget, and for planners that do not know state on the host: one plan, all state on
// the device. Thread-safe, if `run_all` is.
absl::StatusOr<PlanWithState> MakePlanWithState(const Graph& graph, const std::vector<std::vector<StorageId>>& slices,
                                                StatePlaces places, const PlanOptions& options,
                                                const RunTasks& run_all = RunInTurn);

}  // namespace hotpack::remat
