// A smaller case of a recorded step: a few operators that stand for many, and a few storages.
//
//   step      f1 f2 │ f3 f4 f5 │ loss b5 b4 │ b3 b2 │ b1 │ update
//   coarse      A         B           C         D      E      F      each touches what its operators touch
//
// It has the step's sizes, times and budget, and is small enough for all of its plans to be visited
// (remat/exact/all_plans.h). Its plans are not the step's. It shows how far a bound is from the best of such plans.
#pragma once

#include <cstddef>

#include "remat/core/graph.h"

namespace hotpack::remat {

// Returns the graph with its operators joined to at most `operators` ≥ 1 groups of consecutive ones: step by step the
// two neighbors that need the least memory together. What only one group touches becomes its workspace. Storages that
// all groups touch alike are joined, the smallest first, until there are at most `storages` ≥ 1; then the smallest are
// left out. `graph` must pass Check(); the result does. Without `in_place` and `updates`. O(operators² · operands +
// storages² · log storages). Thread-safe.
Graph Coarsen(const Graph& graph, size_t operators, size_t storages);

}  // namespace hotpack::remat
