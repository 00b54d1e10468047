// TFLMS (Le et al. 2018, "TFLMS: large model support in TensorFlow by graph rewriting"): contents with a distant next
// use are copied to the host and back, by operators inserted into the graph on such edges.
//
//   f ───────── 7 operators ─────────► g        f ─► swap out        swap in ─► g
//   topological order: distance 8 > threshold            └─────────────┘  starts `ahead` operators before g
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "remat/core/schedule.h"
#include "remat/core/simulator.h"
#include "remat/core/values.h"

namespace hotpack::remat {

// The tool's parameters.
struct TflmsOptions {
  int threshold = 1;  // edges that span more operators than this are candidates
  // The number of contents that are copied: the first ones, in topological order of their makers.
  int tensors = 0;
  int ahead = 1;  // ≥ 1; the copy back begins so many operators before the use
};

// Returns the number of candidates for copies.
int TflmsCandidates(const Graph& graph, const Values& values, int threshold);

// Returns the plan of these parameters. Weights and given contents stay. Where memory would exceed `budget` bytes, the
// schedule waits for a copy (wait_for_memory.h), as TensorFlow's allocator does when memory is exhausted.
Schedule ScheduleWithTflms(const Graph& graph, const Values& values, const TflmsOptions& options, Bytes budget,
                           const Machine& machine = {});

// Returns the fastest of several plans whose live peak is at most `budget` bytes, or ResourceExhausted with the least
// live peak of all. There the user chooses the number of tensors for a budget (Chen 2020, section 5.1). Here all
// numbers are tried (at most 64 of them), with some thresholds and distances, as many as the time allows. Thread-safe.
absl::StatusOr<Schedule> ScheduleByTflms(const Graph& graph, const Values& values, Bytes budget,
                                         const Machine& machine = {}, int64_t time_limit_ns = INT64_MAX);

}  // namespace hotpack::remat
