// Graphs as JSON (docs/plan.md), and recorded steps of PyTorch, format hotpack-step (docs/graph_format.md).
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

// Returns the graph of a text. It passes Check(). Errors are one line, "NAME: reason". O(length · log length).
// Thread-safe.
//
// Operators that come before their operands' makers are moved behind them, as few as possible. A cycle is an error that
// names its operators. A recorded step keeps its order instead. Its operators have their places in their names. It has
// one more operator, "release", where the program frees what it held beyond the last use.
absl::StatusOr<Graph> ParseGraphJson(std::string_view text, std::string_view name);

// Returns the text of a graph, without `held` and `released_after`. A name that is used twice gets a number appended.
// Thread-safe.
std::string FormatGraphJson(const Graph& graph);

}  // namespace hotpack::remat
