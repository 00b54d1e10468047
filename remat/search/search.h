// hotpack's own planner: for a budget the fastest plan that a search over all gaps finds, in the time that it is given.
//
//   begin     least cuts where the backward pass begins, with the results between 1, 2, 3, ... stretches of the forward pass held; one
//             pass of remat/search/budget_fit.h each for several ways to compare contents, and for each threshold of
//             cost a byte: what is cheaper goes, and what it is made from stays; for classes of layers alike; with
//             copies, for parts of what waits long, and for one after the other of what is largest and waits longest
//   improve   ruin and recreate (Schrimpf et al. 2000) with threshold acceptance (Dueck and Scheuer 1990): holds some of what
//             went, or lets go of others, one by one or the same gap of many layers alike at once; the fitter mends the
//             rest
//   copy less what is copied without need stays
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "remat/search/budget_fit.h"

namespace hotpack::remat {

struct SearchOptions {
  Bytes budget = INT64_MAX;  // of what is live at once
  bool swap = false;         // copies to the host too
  uint64_t seed = 1;
  int64_t steps = INT64_MAX;                // tried improvements, at most
  int64_t time_limit_ns = INT64_MAX;        // where it strikes, what is found depends on the machine
  std::vector<const Decisions*> from = {};  // plans to begin with, for whatever budget
  bool anew = true;                         // and with those that it finds itself
  // If given: what a plan is to pass besides, such as that its arena fits. Looked at for a part of the time, where a
  // plan is faster than all that have passed, so what is found depends on the machine; where none has passed, the
  // answer is the fastest of the others.
  std::function<bool(const Schedule&)> passes = {};
};

struct Found {
  bool fits = false;
  bool passes = false;  // SearchOptions::passes was given, and said so
  Decisions choice;
  Schedule schedule;
  Nanoseconds time = 0;
  Nanoseconds least_time = 0;  // of all that fit, whether they pass or not
  Bytes peak = 0;              // bytes; no arena for the plan is smaller
  int64_t steps = 0;
};

class Search {
 public:
  // `graph` must pass Check(); both must outlive it.
  Search(const Graph& graph, const Values& values, const Machine& machine = {});
  ~Search();

  // The same for the same options, calls before it and number of steps, unless a time limit strikes or `passes` is
  // given. Not thread-safe.
  Found Run(const SearchOptions& options);

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace hotpack::remat
