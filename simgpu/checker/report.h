// Reports of the checker: one line each on stderr (the first 20), all of them in SIMGPU_REPORT_FILE.
#pragma once

#include <cstdint>

namespace simgpu {

// Writes a report. Thread-safe. Writes at once, so that a process that ends by _exit or a signal loses none.
// `kind` is a word such as "overlap"; the rest is printf's.
__attribute__((format(printf, 2, 3))) void Report(const char* kind, const char* format, ...);

uint64_t ReportCount();

// Counted work: kernels with known parameters (whose pointers are checked) or unknown ones, and calls of shimmed
// libraries that report all memory that they use or not.
enum class Counted { kKernelKnown, kKernelNotKnown, kCallTold, kCallNotTold };
constexpr int kCountedKinds = 4;

// Thread-safe.
void CountWork(Counted kind);

// Writes the line with the total at the end of the process. Writes nothing without a report and without a report file.
// The file also gets a line with the counted work.
void FinishReports();

}  // namespace simgpu
