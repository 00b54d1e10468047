// What `hotpack run` finds out before it starts the program.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace hotpack {

struct RunOptions {
  std::string subcommand = "run";
  bool record = false;  // HOTPACK=record: nothing is served
  bool doctor = false;  // the processes leave what they find out about themselves (preload/hooks/doctor_file.h)
  bool output_to_stderr = false;  // the program's standard output goes to stderr
  bool simulate = false;
  bool keep_caching = false;                     // frameworks go on keeping released memory to themselves
  std::string trace;                             // empty: none
  std::string json_stats;                        // empty: none
  std::string report;                            // empty: none
  bool force = false;                            // these may be written over
  std::map<std::string, std::string> variables;  // of preload/process/option_table.h, given as flags
  std::string plan;                              // empty: none but what HOTPACK_PLAN says
  std::vector<std::string> command;
};

// The file that execvp would run, empty if there is none; *found_but_not_executable tells 126 from 127.
std::string FindProgram(const std::string& name, bool* found_but_not_executable);

// The libraries that go with this executable: next to it in ../lib (build tree, plain installation) or in the installed
// library directory. Empty when missing.
struct RunLibraries {
  std::string preload;                     // libhotpack_preload.so.0
  std::string nvtx;                        // libhotpack_nvtx.so.0, if it was built
  std::string simgpu_directory;            // holds libcuda.so.1 and libcudart.so.13
  std::string simgpu_witness;              // libsimgpu_witness.so
  std::string simgpu_cudart;               // libcudart.so.13
  std::vector<std::string> simgpu_others;  // libcublasLt.so.13 and libcublas.so.13, if they were built
};
RunLibraries FindLibraries();

// True if a driver library can be loaded.
bool HasDriver();

// Sets LD_PRELOAD and what else the program needs in this process's environment. `directory`: where the statistics and
// the checker's report go. Empty, or the reason why it is not possible.
std::string PrepareEnvironment(const RunOptions& options, const RunLibraries& libraries, const std::string& directory);

// Where the program's allocations are recorded: the file of --trace, with --report one below `directory`, else empty.
std::string RecordingPath(const RunOptions& options, const std::string& directory);

// Where the checker of the simulated device writes, below `directory`.
std::string CheckerReportPath(const std::string& directory);

}  // namespace hotpack
