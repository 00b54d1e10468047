// Makes other actions wait for copies to the host: schedules with less memory and more stalls.
#pragma once

#include "remat/core/schedule.h"

namespace hotpack::remat {

// Returns `schedule` with waits for copies. Its live peak is at most that of `schedule`, and may still exceed `budget`
// bytes. O(actions · copies). Thread-safe.
//
// BuildSchedule() drops a storage when its copy to the host has ended, so that no action waits for the copy. Here:
//  1. Such a drop moves ahead of the first action that would exceed the budget, the first copied storage first. That
//     action waits for the copy.
//  2. A copy back that would exceed the budget moves behind the actions that need the memory, unless its use comes
//     first. The last needed copy moves first.
//  3. Everything else keeps its order, so every operator sees the same contents as before.
Schedule WaitForMemory(const Graph& graph, const Schedule& schedule, Bytes budget);

}  // namespace hotpack::remat
