// The running processes, as /proc has them.
#pragma once

#include <string>
#include <vector>

namespace hotpack {

// Returns the ids of all processes, in ascending order. O(processes).
std::vector<int> AllProcesses();

// Returns the children of a process in ascending order. Ended ones that it has not waited for are among them.
// O(processes).
std::vector<int> Children(int pid);

// Returns the children of a process, and their descendants. A process whose parent has ended is not among them.
// O(processes).
std::vector<int> Descendants(int pid);

// Returns false if the process has ended. One that its parent has not waited for has ended.
bool IsRunning(int pid);

// Returns the contents of /proc/PID/`name`, as far as they can be read. *error, if not null: 0, or errno. (Not by a
// stream: its iterator throws where the process ends meanwhile.)
std::string ProcessFile(int pid, const char* name, int* error = nullptr);

// Returns the name of the process's program (at most 15 bytes); empty: there is no such process.
std::string ProgramName(int pid);

}  // namespace hotpack
