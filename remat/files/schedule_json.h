// Plans as JSON: what `hotpack plan --out` writes and `hotpack plan verify` reads.
//
//   {"format": "hotpack-plan", "version": 1, "operators": 210, "storages": 429,
//    "actions": [["run", 0], ["run", 1, [0]], ["drop", 17], ["offload", 3], ["prefetch", 3], ["forget", 3], ...],
//    "saved_states": [5]}
//
// Operators and storages are numbered from 0 as in the graph. A run may list the indices of its `in_place` pairs in
// use.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "remat/core/graph.h"
#include "remat/core/schedule.h"

namespace hotpack::remat {

// Of a graph whose updates are in slices (remat/core/update_slices.h).
struct PlanSlices {
  Bytes bytes = 0;  // of SliceUpdates(); 0: no slices
  std::vector<std::vector<StorageId>> storages = {};
  size_t on_host = 0;  // so many of them have their state on the host between steps (SendStateAway())
};

// Returns the text of a plan. With slices it has `slice_bytes`, and `slices`: the parameters of each.
// `state_on_host` and `host_slices` are left out if no state is on the host between steps.
std::string FormatScheduleJson(const Graph& graph, const Schedule& schedule, const PlanSlices& slices = {});

// Returns the slices of the plan in a text, without their storages. InvalidArgument with one line if the text is no
// JSON, or the size is none.
absl::StatusOr<PlanSlices> SlicesOfPlan(std::string_view text, std::string_view file);

// Returns the schedule of a text. Errors are one line, "NAME: reason". One error is a plan of another graph, by the
// numbers of operators and storages. Whether the actions are possible is checked by the verifier, not here.
absl::StatusOr<Schedule> ParseScheduleJson(std::string_view text, std::string_view name, const Graph& graph);

}  // namespace hotpack::remat
