// What a schedule costs: time on three engines, and memory. Every planner is judged by this.
//
//   compute   │ op 0 │ op 1 │ op 2 │stall│ op 3 │      an operator waits for the copies back of what it uses
//   to host          │ offload a │                     begins when what a holds has been made, and the engine is free
//   to device                   │  prefetch a  │       begins when the operators issued before it are through
//
// A drop waits, with all operators issued after it, for a copy to the host of the same storage that is under way: its
// memory may be another's next. Time is exact under these rules; a real device may be faster where a placement needs no
// such wait.
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

// Memory of one storage (of several, where an operator worked in place), or the workspace of one run. Clock values
// count runs and prefetches from 1; what is given is there from 0.
struct StorageResidency {
  StorageId storage = kWorkspaceOf;
  Bytes bytes = 0;
  Clock begin = 0;
  Clock end = 0;
  int32_t continues = -1;  // a stay before it whose offset it has: contents that were copied back go where they were
};

struct Outcome {
  Nanoseconds time = 0;     // from the first action to the end of the last operator and copy
  Nanoseconds compute = 0;  // sum of the costs of all runs; time - compute is stalls
  Bytes live_peak = 0;      // bytes, the most that stays at one clock value: no arena is smaller
  Bytes host_peak = 0;
  int64_t runs_again = 0;  // runs of operators that had run before
  int64_t copies = 0;      // offloads and prefetches
  std::vector<StorageResidency> residencies;
};

// InvalidArgument with one line that names the first action that cannot be done: contents that are not on the device,
// memory given back that is not there, a host without room, contents to keep that are not on the device at the end.
// That contents are the *right* ones is for the verifier to say (remat/core/verifier.h). `graph` must pass Check().
// O(actions × operands). Thread-safe.
absl::StatusOr<Outcome> Simulate(const Graph& graph, const Schedule& schedule, const Machine& machine = {});

// The arena's blocks: one a stay, sizes rounded up to `granularity`; a stay that continues
// another one is of its block. Storages and workspaces without bytes are left out. O(stays).
Instance ToInstance(const std::vector<StorageResidency>& residencies, Bytes granularity = kBlockUnit);

}  // namespace hotpack::remat
