// Runs a schedule step by step and checks the contents that every operator sees. Shares no code with the simulator.
#pragma once

#include <string>

#include "remat/core/graph.h"
#include "remat/core/schedule.h"

namespace hotpack::remat {

// Returns an empty string if the schedule computes the same as the program, otherwise one line that names the first
// fault. `graph` must pass Check(). O(actions × operands). Thread-safe. Invariants:
//  1. At each run an operator finds in every storage that it uses the same contents as in the program.
//  2. Each operator runs at least once. An operator with `once` runs exactly once, and in the program's order.
//  3. Random operators first run in the program's order. They run again only if the generator's state was saved.
//  4. Kept contents are on the device at the end, or on the host (Storage::away), and are the program's last ones.
//  5. A storage that the program holds has its contents: on the device, or on the host alone if it may move. From there
//     they return by a copy: the program's own tensor is not the one that a repeated run makes.
//  6. Only allocated memory is freed. Only contents on the device are copied to the host, and only host copies back.
std::string Verify(const Graph& graph, const Schedule& schedule);

}  // namespace hotpack::remat
