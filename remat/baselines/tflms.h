// TFLMS (Le et al. 2018, "TFLMS: large model support in TensorFlow by graph rewriting"): contents that are used again
// far away are copied to the host and back, by operators put into the graph on such edges.
//
//   f ───────── 7 operators ─────────► g        f ─► swap out        swap in ─► g
//   topological order: distance 8 > threshold            └─────────────┘  starts `ahead` operators before g
#pragma once

#include "absl/status/statusor.h"
#include "remat/core/schedule.h"
#include "remat/core/simulator.h"
#include "remat/core/values.h"

namespace hotpack::remat {

// The tool's parameters.
struct TflmsOptions {
  int threshold = 1;  // edges that span more operators than this are candidates
  int tensors = 0;    // how many are copied: the first ones, in topological order of what makes them
  int ahead = 1;      // operators before the use at which the copy back begins; ≥ 1
};

// How many there are to choose from.
int TflmsCandidates(const Graph& graph, const Values& values, int threshold);

// The plan of these parameters; weights and what is given stay. `budget`: where memory would be above it, a copy is
// waited for (wait_for_memory.h), as TensorFlow's allocator does when it has none left.
Schedule ScheduleWithTflms(const Graph& graph, const Values& values, const TflmsOptions& options, Bytes budget,
                           const Machine& machine = {});

// The user chooses the number of tensors for a budget (Chen 2020, section 5.1): here the fastest of all numbers (at
// most 64 of them), with some thresholds and distances, whose live peak is at most `budget` bytes. ResourceExhausted
// with the least live peak of all. Thread-safe.
absl::StatusOr<Schedule> ScheduleByTflms(const Graph& graph, const Values& values, Bytes budget,
                                         const Machine& machine = {});

}  // namespace hotpack::remat
