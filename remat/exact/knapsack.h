// Which results of the forward pass are saved for the backward pass, as a knapsack: PyTorch's activation_memory_budget.
//
// A share of what is saved as it is may be saved; what saves the most time is. The rest is computed again. The share is
// not a memory: what is computed again is there as well while the backward pass needs it, all at once where a long run
// of operators has nothing saved, so that saving less may need more (the peak falls with the share at first and then
// rises again). Hence a budget is met by trying shares, and each plan is judged by its live peak.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "remat/core/schedule.h"
#include "remat/core/simulator.h"
#include "remat/core/values.h"

namespace hotpack::remat {

struct KnapsackOptions {
  bool greedy = false;  // by time saved for a byte; else by dynamic programming
  int grains = 2000;    // dynamic programming: memory in so many parts of what is saved as it is, sizes rounded up
  int shares = 20;      // ScheduleByKnapsack: tried evenly, then 6 between the best that fits and the next greater one
  Machine machine = {};
};

struct SavedResults {
  std::vector<bool> again;     // by operator: of the forward pass, and its results are not saved
  Bytes bytes = 0;             // saved
  Bytes all = 0;               // what the backward pass uses of the forward pass's results
  Nanoseconds time_again = 0;  // of the operators that make what is used and not saved; others may have to run for them
};

// `share`: 0 to 1. Results of operators that may run once only are saved in any case, and count. O(operators · grains)
// time and bits, or O(operators · log). Thread-safe.
SavedResults SaveResults(const Graph& graph, const Values& values, double share, const KnapsackOptions& options = {});

// With what is not saved made again, once, in the gaps from the forward pass to the backward pass.
Schedule ScheduleOf(const Graph& graph, const Values& values, const SavedResults& saved, const Machine& machine = {});

// The fastest plan over the shares whose live peak is at most `budget` bytes. ResourceExhausted with the least found.
// Thread-safe.
absl::StatusOr<Schedule> ScheduleByKnapsack(const Graph& graph, const Values& values, Bytes budget,
                                            const KnapsackOptions& options = {});

}  // namespace hotpack::remat
