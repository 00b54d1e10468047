// The program that plans: `hotpack plan` becomes it, `hotpack need` asks it.
#pragma once

#include <string>

namespace hotpack {

// Returns the path of hotpack-remat beside this program, whether it is there or not; empty if this program's own path
// is unknown.
std::string PlanProgram();

}  // namespace hotpack
