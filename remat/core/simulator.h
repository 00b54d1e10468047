// Simulates a schedule: its time on three engines, and its memory. Every planner is judged by this.
//
//   compute   │ op 0 │ op 1 │ op 2 │stall│ op 3 │      an operator waits until its operands are copied back
//   to host          │ offload a │                     begins when a's contents are made and the engine is free
//   to device                   │  prefetch a  │       begins when all operators issued before it have ended
//
// A drop, and all operators issued after it, wait for a pending copy of that storage to the host, because its memory
// may be reused next. Times are exact under these rules. A real device may be faster where a placement needs no such
// wait.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "packer/block_unit.h"
#include "packer/types.h"
#include "remat/core/graph.h"
#include "remat/core/schedule.h"

namespace hotpack::remat {

struct Machine {
  double bytes_per_ns_to_host = 12.0;    // > 0
  double bytes_per_ns_to_device = 12.0;  // > 0
  Bytes host_memory = INT64_MAX;         // ≥ 0, for copies of storages
};

inline constexpr StorageId kWorkspaceOf = -1;

// Memory of one storage, or the workspace of one run. If an operator works in place, several storages share one
// residency. Clock values count runs and prefetches from 1. Given contents are resident from 0.
struct StorageResidency {
  StorageId storage = kWorkspaceOf;
  Bytes bytes = 0;
  Clock begin = 0;
  Clock end = 0;
  // Index of an earlier residency whose offset it reuses: contents copied back return to their place.
  int32_t continues = -1;
};

struct Outcome {
  Nanoseconds time = 0;     // from the first action to the end of the last operator and copy
  Nanoseconds compute = 0;  // sum of the costs of all runs; time - compute is stall time
  Bytes live_peak = 0;      // most resident bytes at one clock value; no arena is smaller
  Bytes host_peak = 0;
  int64_t runs_again = 0;  // runs of operators after their first run
  int64_t copies = 0;      // offloads and prefetches
  std::vector<StorageResidency> residencies;
};

// Returns the costs, or InvalidArgument with one line that names the first impossible action. `graph` must pass
// Check(). O(actions × operands). Thread-safe. Impossible are:
//  - uses of contents that are not on the device, and drops of memory that is not allocated;
//  - copies that exceed the host's memory;
//  - kept contents that are not on the device at the end.
//
// The simulator does not check that the contents are the *right* ones. The verifier does (remat/core/verifier.h).
absl::StatusOr<Outcome> Simulate(const Graph& graph, const Schedule& schedule, const Machine& machine = {});

// Returns the arena's blocks: one per residency, with sizes rounded up to `granularity`. A residency that continues
// another one belongs to its block. Empty storages and workspaces are left out. O(residencies).
Instance ToInstance(const std::vector<StorageResidency>& residencies, Bytes granularity = kBlockUnit);

}  // namespace hotpack::remat
