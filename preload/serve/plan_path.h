// Path of the file that holds an arena's plan.
#pragma once

#include <string>

namespace hotpack {

// Expands `pattern`: %p is the process id, %d is `device`, %% a percent sign. %r is this process's rank in a job of
// many: the first of RANK, OMPI_COMM_WORLD_RANK, SLURM_PROCID, PMI_RANK that is a number; else 0. Any other character
// after a percent sign stays. Returns an empty string if the result is longer than a path may be.
std::string ExpandPlanPath(const char* pattern, int device);

// Returns whether this process is a rank in a job of many (%r). Such a process uses one device.
bool IsRank();

// Appends .2, .3 ... for the second, third ... arena of the same name; nothing for the first.
std::string NumberedPlanPath(const std::string& path, int ordinal);

}  // namespace hotpack
