// Runs a schedule step by step and looks at what every operator sees. Shares no code with the simulator.
#pragma once

#include <string>

#include "remat/core/graph.h"
#include "remat/core/schedule.h"

namespace hotpack::remat {

// Empty when the schedule computes what the program does; otherwise one line that names the first fault:
//  - an operator, each time it runs, finds in every storage that it uses the contents that it finds there in the
//    program;
//  - each operator runs at least once; one that may not run again exactly once, and in the program's order;
//  - those that draw random numbers run first in the program's order, and again only if the generator's state was
//    saved;
//  - contents to be kept are on the device at the end, and are those that the program leaves;
//  - memory is given back only where there is some, copied to the host only what is there, and back only from there.
// O(actions × operands). `graph` must pass Check(). Thread-safe.
std::string Verify(const Graph& graph, const Schedule& schedule);

}  // namespace hotpack::remat
