// What a schedule of any planner decides, value by value: where the search may begin.
#pragma once

#include "remat/core/schedule.h"
#include "remat/core/values.h"
#include "remat/search/budget_fit.h"

namespace hotpack::remat {

// Returns the choices of a schedule that passes Verify(): of each gap in which the contents leave the device, whether
// they come back from the host, are computed again, or are computed again and leave once more; and how long values stay
// after their last use. Made from them, a schedule may differ: only the search's own say exactly as much. O(actions ×
// operands). Thread-safe.
Decisions DecisionsOf(const Graph& graph, const Values& values, const Schedule& schedule);

}  // namespace hotpack::remat
