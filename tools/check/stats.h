// Findings from hotpack's figures of a run (docs/statistics.md).
#pragma once

#include "tools/check/session.h"

namespace hotpack::check {

// Adds steady_iteration, planned_share, driver_memory_calls_steady and (not for a plain arena) reserved_over_live. Adds
// nothing without figures.
void AddStatsFigures(Step* step);

// Adds the finding `served_by_script`: from some iteration on a script served the job.
void CheckServedByScript(Step* step);

// Adds the finding `planned_share`: a script serves at least 99 % of the requests from the steady iteration on.
void CheckPlannedShare(Step* step);

// Adds the finding `memory`: the most held at once is at most 1.10 times the live peak plus 4 MiB.
void CheckMemory(Step* step);

// Adds the finding `serving_memory` and the figure serving_over_live: from the steady iteration on, the most held is at
// most 1.02 times the live peak plus 4 MiB.
void CheckServingMemory(Step* step);

// Adds the finding `below_OTHER` of a run that held `held` bytes at most. `other`: PyTorch's allocator `default`, whose
// reservation `theirs` must be larger; or `expandable`, which a run may exceed by 2 % and 4 MiB: before it has a plan
// hotpack serves as any allocator does, and libraries' own requests are in its figure but not in PyTorch's.
void CheckBelow(const std::string& other, double held, double theirs, Step* step);

}  // namespace hotpack::check
