// A program under `hotpack need`: run on the simulated device, ended after some steps, recorded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "profiler/trace_file.h"
#include "tools/run/run_setup.h"

namespace hotpack {

// A line of the program that read a value of the device: zeros there.
struct ValueRead {
  std::string line;  // "train.py:30"
  uint64_t times = 0;
};

struct SimulatedRun {
  std::vector<std::string> command;
  int code = 0;                        // the program's exit code, or 128 + signal
  double seconds = 0;                  // of the run
  uint64_t steps = 0;                  // of the optimizer, if PyTorch said so; else the marks
  bool ended = false;                  // it was ended after its steps; false: it came to its own end
  uint64_t processes = 0;              // that requested device memory; the one with most requests counts
  uint64_t passed_through = 0;         // its requests that are not in the recording
  std::optional<TraceFile> recording;  // of that process; nothing: none requested device memory, or it was cut
  std::string no_recording;            // why there is none
  std::vector<ValueRead> reads;        // most often first
  std::string graph;                   // the text of the program's graph (docs/pytorch.md); empty: there is none
};

struct SimulatedRunOptions {
  RunOptions run;            // the command, and the simulated device's memory
  uint64_t steps = 3;        // of the optimizer, after which a PyTorch program is ended; 0: it runs to its end
  int ranks = 0;             // of the fake process groups, each on a device of its own; 0: the program's own groups
  int rank = 0;              // of this run
  bool keep_values = false;  // large contents are kept in host memory
  bool no_graph = false;     // no step's graph is recorded: nothing is known of the peak's parts
};

// Runs the program and reads what it left. Its standard output goes to stderr. Returns nothing, with *code set, if it
// could not be started, which was reported. This process's environment is as before.
std::optional<SimulatedRun> RunSimulated(const SimulatedRunOptions& options, int* code);

}  // namespace hotpack
