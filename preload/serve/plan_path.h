// Where the plan of an arena is kept.
#pragma once

#include <string>

namespace hotpack {

// `pattern` with %p as the process id, %d as `device`, %r as this process's rank in a job of many (RANK,
// OMPI_COMM_WORLD_RANK, SLURM_PROCID, PMI_RANK, the first that is a number; else 0), %% as a percent sign. What else
// follows a percent sign stays as it is. Empty if the result is longer than a path may be.
std::string ExpandPlanPath(const char* pattern, int device);

// The same with .2, .3 ... behind it for the second, third ... of the same name; nothing for the first.
std::string NumberedPlanPath(const std::string& path, int ordinal);

}  // namespace hotpack
