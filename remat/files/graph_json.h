// Graphs as JSON (docs/graph_format.md).
//
//   {"format": "hotpack-graph", "version": 1,
//    "storages": [{"name": "x", "bytes": 4096, "given": true}, {"name": "y", "bytes": 4096}, ...],
//    "operators": [{"name": "conv1", "cost_ns": 100, "reads": ["x", "w"], "writes": ["y"]}, ...]}
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "remat/core/graph.h"

namespace hotpack::remat {

// Operators that come before what they need are put behind it, as few as possible; where they need each other, that is
// an error that names them. Errors are one line, "NAME: reason". The graph passes Check(). O(length · log length).
// Thread-safe.
absl::StatusOr<Graph> ParseGraphJson(std::string_view text, std::string_view name);

// The reverse. Names that are given twice get a number behind them. Thread-safe.
std::string FormatGraphJson(const Graph& graph);

}  // namespace hotpack::remat
