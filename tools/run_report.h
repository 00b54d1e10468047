// What `hotpack run` says afterwards.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/stats_file.h"
#include "tools/run_setup.h"

namespace hotpack {

// Reports of the simulated device's checker in the file that SIMGPU_REPORT_FILE named, of all processes: a line each that
// begins "simgpu: REPORT ". 0 if there is no file.
uint64_t CountCheckerReports(const std::string& path);

// The --json-stats object: the figures of the process with most requests. `checker_reports` < 0: not simulated.
std::string StatsJson(const hotpack_stats& stats, int64_t checker_reports);

// The one line on stderr.
std::string SummaryLine(const RunOptions& options, const std::vector<ProcessStats>& processes, int64_t checker_reports);

}  // namespace hotpack
