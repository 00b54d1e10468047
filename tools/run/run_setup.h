// The preparations of `hotpack run` before it starts the program.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace hotpack {

struct RunOptions {
  std::string subcommand = "run";
  bool record = false;            // HOTPACK=record: hotpack serves nothing
  bool doctor = false;            // the processes write notes about themselves (preload/hooks/doctor_file.h)
  bool output_to_stderr = false;  // the program's standard output goes to stderr
  bool simulate = false;
  std::string memory;  // of each simulated device, a size (tools/cli/size_text.h); empty: SIMGPU_MEMORY or its default
  bool keep_caching = false;                     // frameworks keep their own caches of released memory
  bool compatibility = false;                    // PyTorch's requests come through the driver
  std::string trace;                             // empty: none
  std::string json_stats;                        // empty: none
  std::string report;                            // empty: none
  bool force = false;                            // these may be overwritten
  bool quiet = false;                            // no summary line
  std::string fail_above;                        // a size that the most held may not exceed; empty: none
  std::map<std::string, std::string> variables;  // of preload/process/option_table.h, given as flags
  std::string graph;                             // of a step of PyTorch; empty: none
  int graph_step = 3;                            // from 2 on
  std::string graph_gpu;                         // whose costs; empty: the package's default
  std::string plan;                              // empty: only what HOTPACK_PLAN names
  std::vector<std::string> command;
};

// Returns the file that execvp would run, empty if there is none. *found_but_not_executable tells 126 from 127.
std::string FindProgram(const std::string& name, bool* found_but_not_executable);

// The libraries of this executable: in ../lib next to it (build tree, plain installation) or in the installed library
// directory. Empty if missing.
struct RunLibraries {
  std::string preload;                     // libhotpack_preload.so.0
  std::string nvtx;                        // libhotpack_nvtx.so.0, if it was built
  std::string simgpu_directory;            // holds libcuda.so.1 and libcudart.so.13
  std::string simgpu_witness;              // libsimgpu_witness.so
  std::string simgpu_cudart;               // libcudart.so.13
  std::vector<std::string> simgpu_others;  // libcublasLt.so.13 and libcublas.so.13, if they were built
  std::string home;                        // for HOTPACK_HOME: holds bin/ and lib/
  std::string python_startup;              // the folder of the package's sitecustomize.py; empty: there is no package
};
RunLibraries FindLibraries();

// Returns true if a driver library can be loaded.
bool HasDriver();

// Sets LD_PRELOAD and the program's other variables in this process's environment. `directory`: for the statistics and
// the checker's report. Returns an empty string or the error.
std::string PrepareEnvironment(const RunOptions& options, const RunLibraries& libraries, const std::string& directory);

// Returns the path of the recording: the file of --trace, with --report one below `directory`, else empty.
std::string RecordingPath(const RunOptions& options, const std::string& directory);

// Returns the path of the simulated device's checker report, below `directory`.
std::string CheckerReportPath(const std::string& directory);

}  // namespace hotpack
