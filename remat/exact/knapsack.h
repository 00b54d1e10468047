// Chooses the results of the forward pass that are saved for the backward pass, as a knapsack: PyTorch's
// activation_memory_budget.
//
// A share of the bytes that the unmodified step saves may be saved. The results that save the most time are. The rest
// is recomputed. The share is not the memory: recomputed results are resident too while the backward pass needs them.
// Where a long run of operators has nothing saved, all of them are resident at once. So saving less may need more: with
// a falling share the peak first falls and then rises. Hence the search for a budget tries shares and judges each plan
// by its live peak.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "remat/core/schedule.h"
#include "remat/core/simulator.h"
#include "remat/core/values.h"

namespace hotpack::remat {

struct KnapsackOptions {
  // Chooses by time saved per byte; otherwise by dynamic programming.
  bool greedy = false;
  // Dynamic programming: the saved bytes are divided into so many grains, and sizes are rounded up.
  int grains = 2000;
  // ScheduleByKnapsack(): shares tried evenly, then 6 more between the best that fits and the next greater one.
  int shares = 20;
  Machine machine = {};
};

struct SavedResults {
  std::vector<bool> again;  // by operator of the forward pass: its results are not saved
  Bytes bytes = 0;          // saved
  Bytes all = 0;            // bytes of the forward pass's results that the backward pass uses
  // Of the makers of results that are used and not saved. Others may have to run for them.
  Nanoseconds time_again = 0;
};

// Returns the best choice for `share`, 0 to 1. Results of operators that may run only once are always saved, and count.
// O(operators · grains) time and bits, or O(operators · log). Thread-safe.
SavedResults SaveResults(const Graph& graph, const Values& values, double share, const KnapsackOptions& options = {});

// Returns the schedule that recomputes the other results once, in the gaps from the forward pass to the backward pass.
Schedule ScheduleOf(const Graph& graph, const Values& values, const SavedResults& saved, const Machine& machine = {});

// Returns the fastest plan over the shares whose live peak is at most `budget` bytes, or ResourceExhausted with the
// least live peak found. Thread-safe.
absl::StatusOr<Schedule> ScheduleByKnapsack(const Graph& graph, const Values& values, Bytes budget,
                                            const KnapsackOptions& options = {});

}  // namespace hotpack::remat
