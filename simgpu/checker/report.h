// Reports of the checker: one line each on stderr (the first 20), all of them in SIMGPU_REPORT_FILE.
#pragma once

#include <cstdint>

namespace simgpu {

// Thread-safe; writes at once, so that a process that ends by _exit or a signal has said everything.
// `kind` is a word such as "overlap"; the rest is printf's.
__attribute__((format(printf, 2, 3))) void Report(const char* kind, const char* format, ...);

uint64_t ReportCount();

// The line with the total, at the end of the process. Nothing without a report and without a report file.
void FinishReports();

}  // namespace simgpu
