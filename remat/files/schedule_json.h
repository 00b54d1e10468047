// Plans as JSON: what `hotpack plan --out` writes and `hotpack plan verify` reads.
//
//   {"format": "hotpack-plan", "version": 1, "operators": 210, "storages": 429,
//    "actions": [["run", 0], ["run", 1, [0]], ["drop", 17], ["offload", 3], ["prefetch", 3], ["forget", 3], ...],
//    "saved_states": [5]}
//
// Operators and storages are numbered from 0 as in the graph; a run may name the pairs in place that it makes use of.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "remat/core/graph.h"
#include "remat/core/schedule.h"

namespace hotpack::remat {

std::string FormatScheduleJson(const Graph& graph, const Schedule& schedule);

// Errors are one line, "NAME: reason": a plan of another graph (numbers of operators and storages) is one. Whether the
// actions can be done is for the verifier to say.
absl::StatusOr<Schedule> ParseScheduleJson(std::string_view text, std::string_view name, const Graph& graph);

}  // namespace hotpack::remat
