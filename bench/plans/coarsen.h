// A smaller case of a recorded step: a few operators that stand for many, and a few storages.
//
//   step      f1 f2 │ f3 f4 f5 │ loss b5 b4 │ b3 b2 │ b1 │ update
//   coarse      A         B           C         D      E      F      each touches what its operators touch
//
// It is small enough for all of its plans to be visited (remat/exact/all_plans.h), and has the step's sizes, times and
// budget. A plan of the step need not be one of the coarse step, or the other way round.
#pragma once

#include <cstddef>

#include "remat/core/graph.h"

namespace hotpack::remat {

// Returns the graph with its operators joined to at most `operators` groups of consecutive ones, such that the largest
// group needs as little memory as possible, and with storages that the same groups touch in the same way joined until
// there are at most `storages`, smallest first, as far as there are such. What only one group touches becomes its
// workspace. `graph` must pass Check(); the result does. Without `in_place` and `updates`. O(operators² · operands).
Graph Coarsen(const Graph& graph, size_t operators, size_t storages, Bytes least);

}  // namespace hotpack::remat
