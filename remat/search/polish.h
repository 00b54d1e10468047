// Improves a schedule action by action, where the search (remat/search/search.h) decides value by value: which copy
// goes first, where memory is freed, what returns early.
#pragma once

#include <cstdint>
#include <functional>

#include "remat/core/schedule.h"
#include "remat/core/simulator.h"

namespace hotpack::remat {

struct PolishOptions {
  Bytes budget = INT64_MAX;  // of the bytes live at once
  Machine machine = {};
  bool swap = false;  // allows copies that the schedule does not have
  uint64_t seed = 1;
  int64_t steps = INT64_MAX;          // most changes tried
  int64_t time_limit_ns = INT64_MAX;  // if it is reached, the result depends on the machine
  // An additional condition for the result, as SearchOptions::passes; empty: none.
  std::function<bool(const Schedule&)> passes = {};
};

// Makes the schedule faster, if it can, or as fast with fewer actions: threshold acceptance (Dueck and Scheuer 1990)
// over moved, removed and added copies, drops and repeated runs. Returns true if it did. The result computes the same,
// needs at most the budget, and passes. `graph` must pass Check(), the schedule Verify(). A step takes O(actions ×
// operands). Thread-safe.
bool Polish(const Graph& graph, const PolishOptions& options, Schedule* schedule);

}  // namespace hotpack::remat
