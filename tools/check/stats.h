// What hotpack's figures of a run (docs/statistics.md) say about it.
#pragma once

#include "tools/check/session.h"

namespace hotpack::check {

// Adds steady_iteration, planned_share, driver_memory_calls_steady and (not for a plain arena) reserved_over_live.
// Nothing without figures.
void AddStatsFigures(Step* step);

// Finding `served_by_script`: from some iteration on the job was served by script.
void CheckServedByScript(Step* step);

// Finding `planned_share`: at least 99 % of the requests from the steady iteration on are served by script.
void CheckPlannedShare(Step* step);

// Finding `memory`: no more is held at once than 1.10 times the live peak and 4 MiB.
void CheckMemory(Step* step);

// Finding `serving_memory`, and the figure serving_over_live: from the steady iteration on, no more is held than 1.02
// times the live peak and 4 MiB.
void CheckServingMemory(Step* step);

}  // namespace hotpack::check
