// The program that plans: `hotpack plan` becomes it, `hotpack need` asks it.
#pragma once

#include <string>

namespace hotpack {

// Returns the path of hotpack-remat, which is installed beside this program. The file may be missing. Empty: this
// program's own path is unknown.
std::string PlanProgram();

}  // namespace hotpack
