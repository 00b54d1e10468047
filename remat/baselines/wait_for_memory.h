// Copies to the host that others wait for: schedules with less memory and more stalls.
#pragma once

#include "remat/core/schedule.h"

namespace hotpack::remat {

// BuildSchedule() drops what is copied to the host when the copy has ended, so that nothing waits for it. Here such
// drops come before what would be above `budget` bytes without them, the first copied first: it waits for the copy.
// Copies back begin behind what would be above the budget beside them, where they are not needed before, the last
// needed first. Otherwise the order stays as it was, and so does what every operator sees. The live peak is at most
// that of `schedule`, and may still be above the budget. O(actions · copies). Thread-safe.
Schedule WaitForMemory(const Graph& graph, const Schedule& schedule, Bytes budget);

}  // namespace hotpack::remat
