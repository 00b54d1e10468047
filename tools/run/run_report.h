// What `hotpack run` says afterwards.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/persist/stats_file.h"
#include "tools/run/run_setup.h"

namespace hotpack {

// What the simulated device says of all processes of the run (simgpu/README.md, "Reports").
struct CheckerTotals {
  uint64_t reports = 0;
  // Of the processes that ended in the ordinary way, not by _exit or a signal: kernels that ran with known parameters,
  // which were checked, and without; calls of cuBLAS and cuDNN that told all memory they use, and that did not.
  uint64_t kernels_known = 0, kernels_not_known = 0;
  uint64_t library_calls_told = 0, library_calls_not_told = 0;
};

// From the file that SIMGPU_REPORT_FILE named. Zeros if there is no file.
CheckerTotals ReadCheckerFile(const std::string& path);

// The --json-stats object: the figures of the process with most requests, and of a simulated run (`checker` not null)
// the checker's.
std::string StatsJson(const hotpack_stats& stats, const CheckerTotals* checker);

// What became of --report.
enum class RunReport {
  kNotWanted,
  kWritten,
  kNothingToShow,  // no process asked for anything that is recorded: no failure of anybody's
  kFailed,
};

// What PyTorch's own allocator would have held at most for the requests of the run. Bytes.
struct PytorchHeld {
  uint64_t usual = 0;       // with its defaults
  uint64_t expandable = 0;  // with expandable segments
};

// Simulated on the recording of the process with most requests (tools/compare). Nothing where that is not known:
// nothing was recorded or not all of it, there is more than one context, PyTorch's caching was left on (its requests
// are of whole segments then), or the recording is too large to be played while somebody waits. O(recorded events).
std::optional<PytorchHeld> PytorchWouldHold(const RunOptions& options, const std::string& directory,
                                            const std::vector<ProcessStats>& processes);

// The one line on stderr: what was held at most, and by the same measure what PyTorch would have held, if that is
// known; what was held while the plan served; what was live; the share of requests served by the plan. `checker`: null
// if not simulated.
std::string SummaryLine(const RunOptions& options, const std::vector<ProcessStats>& processes,
                        const CheckerTotals* checker, RunReport report, const std::optional<PytorchHeld>& pytorch);

// What stands below that line on a terminal that shows Unicode: the load of the iteration as two lines of blocks;
// without a plan that of the recording, if there is one. Otherwise empty.
std::string LoadCurve(const RunOptions& options, const std::string& directory,
                      const std::vector<ProcessStats>& processes);

// Writes the page of --report, if one is wanted, from what was recorded of the process with most requests. `stats`: the
// --json-stats object. *reason: why it failed.
RunReport WriteRunReport(const RunOptions& options, const std::string& directory,
                         const std::vector<ProcessStats>& processes, const std::string& stats, std::string* reason);

}  // namespace hotpack
