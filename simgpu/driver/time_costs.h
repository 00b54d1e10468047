// SIMGPU_TIME: what calls, kernels and copies take in virtual time, and what a process has taken at its end.
#pragma once

#include <string>
#include <vector>

#include "simgpu/checker/virtual_time.h"

namespace simgpu {

struct Driver;

// Reads the setting at cuInit. A malformed one ends the process with one line and status 2.
void ReadTimeCosts();

// Fills in the costs of an entry point, by its base name.
void CostOfCall(const std::string& base, CallTime* time);

// The last submitted operation of a stream (its number in Driver::order) is this work. Without the time mode they do
// nothing. Lengths are bytes.
void TakeKernel(Driver& d, int stream, uint64_t nanoseconds);
void TakeMemory(Driver& d, int stream, uint64_t bytes);  // reads or writes device memory
void TakeCopy(Driver& d, int stream, uint64_t to, uint64_t from, uint64_t bytes);

// Nanoseconds of a kernel, from its name and the number of its threads. 0 without the time mode.
uint64_t KernelTime(const std::string& name, uint64_t threads);
// A call of a shimmed library takes the host a launch.
void HostTakesLibraryCall();

struct NamedTime {
  std::string base;
  const CallTime* time;
};
std::vector<NamedTime> TimesByName();  // entry.cc

// Writes a line of JSON to SIMGPU_TIME_FILE, or a shorter line to stderr.
void FinishTimes(const std::vector<NamedTime>& calls);

// A mark of the program's, such as the end of a step: the host's time is kept under this name.
void MarkTime(const char* name);

}  // namespace simgpu
