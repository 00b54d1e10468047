// One random program: phases of iterations that repeat with deviations, and disorder between them. It is a function of
// the seed, except when threads run at the same time, and except the moment at which a plan is ready (unless `settle`).
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "tests/property/job.h"

namespace property {

// Passes memory between the threads of a process, so that one frees another's.
class Exchange {
 public:
  void Give(CUdeviceptr address);
  CUdeviceptr Take();  // 0: there is none

 private:
  std::mutex mutex_;
  std::vector<CUdeviceptr> addresses_;
};

struct ProgramOptions {
  uint64_t seed = 1;
  uint64_t operations = 10000;
  int devices = 1;
  bool small = false;            // few and short iterations: for a program of some hundred driver calls
  Exchange* exchange = nullptr;  // not null: other programs run in this process at the same time
  bool varied = false;           // marked iterations of which each differs from the others
  bool captures = true;          // … and agree on whether there are captures, which forbid calls of others
};

struct ProgramResult {
  Counts counts;
  bool wrong_answers = false;
};

// Runs a program. Returns after all its objects are destroyed, unless the driver refused.
ProgramResult RunProgram(const ProgramOptions& options);

}  // namespace property
