// Which parts of a recorded optimizer's update may run apart from each other (docs/graph_format.md, `optimizers`).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "remat/core/graph.h"

namespace hotpack::remat {

// Returns the divisible updates of a recorded step. `graph` has the document's storages and operators, in its order.
// O(length of the updates' calls). Thread-safe.
//
// The n-th elements of all lists of one call belong to one part, and so do all operands of a call without lists.
// Storages that no slice and no such element joins to a parameter belong to all parts. Left out are updates
//  - that the recorder calls whole;
//  - of operators whose call is unknown;
//  - with one part, or with an operator that changes what all parts read after one of them has read it.
std::vector<DivisibleUpdate> ReadUpdates(const nlohmann::ordered_json& document, const Graph& graph);

}  // namespace hotpack::remat
