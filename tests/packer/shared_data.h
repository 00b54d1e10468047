// Public instances and traces in a folder next to the repository. Tests skip those that are missing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "packer/types.h"

namespace hotpack {

// The folder $HOTPACK_SHARED/`folder`, else <source>/../shared/`folder`; empty if there is none.
std::string SharedFolder(const std::string& folder);

// Paths of the folder's .csv files, sorted.
std::vector<std::string> CsvFilesIn(const std::string& folder);

std::string FileStem(const std::string& path);

// The second step of a recorded event CSV (`event,id,bytes` with alloc, free, mark) as one turn of a cycle: its
// allocations, sizes rounded up to 512 bytes; the clock is the number of events since the step's mark. A block released
// in the next step is resident from its allocation to the end of the step and from the step's begin to its release. A
// block older than one period is unrolled by its caller in real life; here the cycle is then two or more steps long.
// Blocks that are never released are left out. Nothing if the file cannot be read.
std::optional<Instance> CyclicInstanceOfTrace(const std::string& path);

// Returns the whole trace on a straight time axis.
std::optional<Instance> WholeTrace(const std::string& path);

}  // namespace hotpack
