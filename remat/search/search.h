// hotpack's own planner. For a budget it returns the fastest plan that a search over all gaps finds within its time
// limit.
//
//   begin       - minimum cuts where the backward pass begins, with the results between 1, 2, 3, ... stretches of the
//                 forward pass held
//               - one pass of remat/search/budget_fit.h for each of several ways to compare values
//               - one pass for each threshold of cost per byte: cheaper values are discarded, their sources are held
//               - classes of similar layers
//               - with copies to the host: minimum cuts where most bytes are wanted, with what they hold beyond the
//                 budget on the host; parts of the values that wait long; one by one the largest that wait longest
//   improve     ruin and recreate (Schrimpf et al. 2000) with threshold acceptance (Dueck and Scheuer 1990): keeps some
//               discarded values or discards others, one by one, or the same gap of many similar layers at once. The
//               fitter repairs the rest
//   copy less   values that are copied without need are kept
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "remat/search/budget_fit.h"

namespace hotpack::remat {

struct SearchOptions {
  Bytes budget = INT64_MAX;  // of the bytes live at once
  bool swap = false;         // allows copies to the host
  uint64_t seed = 1;
  int64_t steps = INT64_MAX;          // most improvements tried
  int64_t time_limit_ns = INT64_MAX;  // if it is reached, the result depends on the machine
  // Plans to begin with, made for any budget.
  std::vector<const Decisions*> from = {};
  // Also begins with plans that the search finds itself.
  bool restart = true;
  // An additional condition for plans, such as that the arena fits; empty: none. The search checks it for a part of its
  // time only, on plans faster than all that passed. So the result depends on the machine. If no plan passes, the
  // result is the fastest of the others.
  std::function<bool(const Schedule&)> passes = {};
};

struct Found {
  bool fits = false;
  bool passes = false;  // SearchOptions::passes was given and returned true
  Decisions choice;
  Schedule schedule;
  Nanoseconds time = 0;
  Nanoseconds least_time = 0;  // of all plans that fit, whether they pass or not
  int64_t copies = 0;          // to the host
  Bytes peak = 0;              // bytes; no arena for the plan is smaller
  int64_t steps = 0;
};

class Search {
 public:
  // `graph` must pass Check(); both must outlive it.
  Search(const Graph& graph, const Values& values, const Machine& machine = {});
  ~Search();

  // Searches for a plan. The result is a function of the options, the earlier calls and the number of steps, unless a
  // time limit is reached or `passes` is given. Not thread-safe.
  Found Run(const SearchOptions& options);

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace hotpack::remat
