// How a program under `hotpack run` ended, in words.
#pragma once

#include <string>
#include <vector>

#include "runtime/persist/stats_file.h"

namespace hotpack {

// Returns the process that ended without memory: its last request found none, and it made no other one afterwards. Of
// several the one with most requests. Null: there is none, so the run's end has another reason. `code`: the exit code
// of the program; 0 means that it got over any failure. O(processes).
const ProcessStats* EndedWithoutMemory(const std::vector<ProcessStats>& processes, int code);

// Returns what happened and what would help, without a full stop: "out of memory at step 3: 132.0 MiB asked, ...".
std::string OutOfMemoryText(const FailedRequest& failed);

// Returns "the program failed with exit code 1" or, for 128 + N, "signal SIGSEGV ended the program". Empty for 0.
std::string ExitText(int code);

// Returns what a program got over: "3 requests found no memory, the last one of 4.0 GiB". Empty if all found some.
std::string FailedRequestsText(const std::vector<ProcessStats>& processes);

}  // namespace hotpack
