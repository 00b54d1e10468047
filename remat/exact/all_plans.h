// The fastest of all plans of a small graph, with copies to the host and repeated runs, and the proof that none is
// faster.
//
//   state      what each storage holds on the device and on the host, which operators have run, and when each engine,
//              each storage's contents and each copy are done
//   move       an operator runs, or contents are copied back. What has to leave for it is dropped just before, and what
//              of that the host has not yet is copied there just before that
//   dominated  two states of equal contents are compared by all their times
//   bound      A* (Hart, Nilsson and Raphael 1968): the operators that have not run, the copies that they and the end
//              wait for, and the copies between two operators that need most of the memory
//
// Nothing is lost by moves in this form. A drop may wait until its memory is needed. A copy to the host begins when its
// contents are made and its engine is free, whenever it is issued, so only the order of copies matters: another copy
// goes first only where its engine would be idle.
#pragma once

#include <cstdint>
#include <optional>

#include "remat/core/schedule.h"
#include "remat/core/simulator.h"

namespace hotpack::remat {

struct AllPlansOptions {
  Bytes budget = INT64_MAX;  // of the bytes live at once
  Machine machine = {};
  bool swap = false;                    // plans with copies to the host, too
  Nanoseconds faster_than = INT64_MAX;  // slower plans, and those as slow, are none
  int64_t most_states = 200'000;        // about 100 bytes and 20 a storage each; and 50 ways to make room for each
  int64_t time_limit_ns = INT64_MAX;
};

struct AllPlansAnswer {
  // All plans were visited or bounded: no plan is faster than `schedule`, or than AllPlansOptions::faster_than where
  // there is none.
  bool complete = false;
  std::optional<Schedule> schedule;  // passes Verify()
  Nanoseconds time = 0;              // of the schedule
  int64_t states = 0;                // that were visited
};

// Returns whether SearchAllPlans() takes such graphs: at most 32 storages and 100 operators, nothing in place.
bool MaySearchAllPlans(const Graph& graph);

// Returns the fastest plan whose first runs are in the program's order, as all planners' here are. Not complete where
// `most_states` or the time limit ended it, or where the host's memory is less than all storages. `graph` must pass
// Check() and MaySearchAllPlans(). Exponential in the storages. Thread-safe.
AllPlansAnswer SearchAllPlans(const Graph& graph, const AllPlansOptions& options);

}  // namespace hotpack::remat
