// The reports of `hotpack run` after the run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/persist/stats_file.h"
#include "tools/run/program_sections.h"
#include "tools/run/run_setup.h"

namespace hotpack {

// Totals of the simulated device over all processes of the run (simgpu/README.md, "Reports").
struct CheckerTotals {
  uint64_t reports = 0;
  // Of processes that ended normally, not by _exit or a signal. Kernels with known parameters, which were checked, and
  // without. Calls of cuBLAS and cuDNN that reported all memory that they use, and others.
  uint64_t kernels_known = 0, kernels_not_known = 0;
  uint64_t library_calls_told = 0, library_calls_not_told = 0;
};

// Reads the file that SIMGPU_REPORT_FILE named. Zeros if there is no file.
CheckerTotals ReadCheckerFile(const std::string& path);

// Returns the --json-stats object: the figures of the process with most requests, of a simulated run (`checker` not
// null) the checker's, and what the program adds (program_sections.h).
std::string StatsJson(const hotpack_stats& stats, const CheckerTotals* checker, const ProgramSections& sections);

// The outcome of --report.
enum class RunReport {
  kNotWanted,
  kWritten,
  kNothingToShow,  // no process made a recorded request; no failure
  kFailed,
};

// The most that PyTorch's own allocator would have held for the requests of the run. Bytes.
struct PytorchHeld {
  uint64_t usual = 0;       // with its defaults
  uint64_t expandable = 0;  // with expandable segments
  // The smallest devices on which the same requests fit (tools/compare/smallest_device.h); 0: the recording is too
  // large to search them while the user waits.
  uint64_t smallest_hotpack = 0, smallest_usual = 0, smallest_expandable = 0;
};

// Simulates it on the recording of the process with most requests (tools/compare). O(recorded events). Returns nothing
// if it is unknown:
//  - nothing was recorded, or only a part;
//  - there is more than one context;
//  - PyTorch's caching was left on (its requests are then whole segments);
//  - the recording is too large to play while the user waits.
std::optional<PytorchHeld> PytorchWouldHold(const RunOptions& options, const std::string& directory,
                                            const std::vector<ProcessStats>& processes);

// Returns the one line on stderr. Its subject is the failure, where the program ended without memory (run_ending.h).
// Otherwise: how the program failed, if it did; the most held, and by the same measure what PyTorch would have held, if
// known; the most held while the plan served; the live peak; the share of requests served by the plan, and why none
// were; the smallest devices, if known; requests that found no memory. `code`: the program's exit code. `checker`: null
// if not simulated. `plan_note`: of PlanNote (plan_note.h). It names no recording that is not there.
std::string SummaryLine(const RunOptions& options, const std::vector<ProcessStats>& processes, int code,
                        const CheckerTotals* checker, RunReport report, const std::optional<PytorchHeld>& pytorch,
                        const std::string& plan_note);

// Returns the text below that line on a terminal that shows Unicode: the load of the iteration in two lines of blocks.
// Without a plan, that of the recording, if there is one. Otherwise empty.
std::string LoadCurve(const RunOptions& options, const std::string& directory,
                      const std::vector<ProcessStats>& processes);

// Writes the page of --report, if requested, from the recording of the process with most requests. `stats`: the
// --json-stats object. *reason: why it failed.
RunReport WriteRunReport(const RunOptions& options, const std::string& directory,
                         const std::vector<ProcessStats>& processes, const std::string& stats,
                         const ProgramSections& sections, std::string* reason);

}  // namespace hotpack
